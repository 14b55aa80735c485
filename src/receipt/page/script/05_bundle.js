// The signed record file of a receipt: one call, one checkpoint.

const TYPES = "https://plimsollmark.github.io/plimsoll/";
const TIERS = ["none", "process", "container", "kernel", "vm"];

const isTrue = (value) => value === true;

const readLine = (source, number) => {
  const what = `bundle line ${number}`;
  const value = parseJson(source, "line", what);
  const members = shape(value, ["s:request?", "s:response?", "o:envelope?", "o:link?"], "line", what);
  must(encodeJson(value) === source, "line", `${what} is not in the one exact encoding`);
  must(members.link, "link", `${what} has no link`);
  const order = ["request", "response", "envelope", "link"].filter((name) => value.has(name));
  must([...value.keys()].join() === order.join(), "line", `${what} has its members in another order`);
  must(members.request !== "" && members.response !== "", "line", `${what} has an empty message`);
  for (const name of ["envelope", "link"]) {
    const envelope = members[name];
    if (!envelope) continue;
    const inner = shape(envelope, ["s:payloadType", "s:payload", "a:signatures"], "line", `${name} of ${what}`);
    must([...envelope.keys()].join() === "payloadType,payload,signatures", "line", `${name} of ${what} is in another order`);
    for (const signature of inner.signatures) {
      shape(signature, ["s:keyid", "s:sig"], "line", `a signature of ${what}`);
      must([...signature.keys()].join() === "keyid,sig", "line", `a signature of ${what} is in another order`);
    }
  }
  return members;
};

// Its place in the file, as its link states it.
const checkLink = async (key, members, number, previous) => {
  const what = `the link of bundle line ${number}`;
  const link = await openEnvelope(key, members.link, what);
  must(link.type === `${TYPES}bundle-link/v1`, "statement", `${what} is another kind of statement`);
  const stated = shape(
    link.predicate,
    ["i:index", "s:previous_sha256", "s:entry_sha256?", "b:checkpoint?", "i:lines?"],
    "statement",
    what,
  );
  must(stated.index === BigInt(number), "link", `${what} states another position`);
  must(stated.previous_sha256 === previous, "link", `${what} does not continue from the line before it`);
  const covered = isTrue(stated.checkpoint) ? stated.previous_sha256 : stated.entry_sha256;
  must(link.subjects.join() === `bundle-line sha256:${covered}`, "statement", `${what} has another subject`);
  return stated;
};

const checkCall = async (key, members) => {
  const what = "the record of bundle line 1";
  must(members.envelope && members.request && members.response, "no_runs", "bundle line 1 is not an answered call");
  const opened = await openEnvelope(key, members.envelope, what);
  must(opened.type === `${TYPES}run-record/v1`, "statement", `${what} is another kind of statement`);
  const optional = new Set(["software_identity", "software_rule_id", "unanswered"]);
  const kinds = { u: "i", i: "i", s: "s" };
  const expected = Object.values(RECORD).map(([name, kind]) => `${kinds[kind]}:${name}${optional.has(name) ? "?" : ""}`);
  const signed = shape(opened.predicate, expected, "statement", what);
  for (const name of optional) signed[name] = signed[name] || "";
  must(signed.version === 2n, "statement", `${what} has a version this page does not know`);
  must(signed.unanswered === "", "statement", `${what} is of a call without an answer`);
  must(opened.subjects.join() === `run-record sha256:${signed.record_sha256}`, "statement", `${what} has another subject`);
  must((await recordDigest(signed)) === signed.record_sha256, "statement", `${what} does not have the digest it states`);

  const request = decode(REQUEST, fromBase64(members.request, "line", "the stored request"), "request");
  const response = decode(RESPONSE, fromBase64(members.response, "line", "the stored response"), "response");
  must(request.project && !request.javascript && !request.module && !request.cell, "binding_mismatch", "the call is not a project's");
  must(response.project && !response.javascript && !response.module && !response.cell, "stored", "the answer is not a project's");
  must(request.protocol >= 2n, "stored", "the request is of a protocol without software rules");
  const stored = response.record;
  must(stored, "stored", "the stored answer has no record");
  for (const [name] of Object.values(RECORD)) {
    must(stored[name] === signed[name], "stored", `the record inside the stored answer has another ${name}`);
  }
  const rule = request.software_rule || { mode: "", identities: [] };
  const expectations = [
    ["request_sha256", await requestDigest(request)],
    ["result_sha256", await resultDigest(response)],
    ["provider", response.sandbox],
    ["isolation", response.isolation],
    ["environment", response.environment],
    ["software_identity", response.software_identity],
    ["software_rule_id", await ruleId(rule)],
  ];
  for (const [name, value] of expectations) {
    must(signed[name] === value, "stored", `${name} computed from the stored messages is not what was signed`);
  }
  must(
    rule.identities.length === 0 || rule.identities.includes(signed.software_identity),
    "stored",
    "the software is outside the rule of the request",
  );
  const floor = request.minimum_isolation;
  must(
    floor === "" || (TIERS.includes(floor) && TIERS.indexOf(signed.isolation) >= TIERS.indexOf(floor)),
    "stored",
    "the stated tier is below the floor of the request",
  );
  must(
    signed.session === "" && signed.sequence === 0n && signed.previous_sha256 === "",
    "binding_mismatch",
    "the call belongs to a session",
  );
  return { record: signed, request, response };
};

const checkBundle = async (key, source) => {
  must(source.endsWith("\n"), "line", "the bundle's last line does not end");
  const lines = source.slice(0, -1).split("\n");
  const parsed = lines.map((line, i) => readLine(line, i + 1));
  must(parsed.length >= 2, "incomplete", "the bundle does not end with a checkpoint");
  must(parsed.length === 2, "many_runs", `the bundle has ${parsed.length} lines instead of a call and a checkpoint`);

  const entryText = lines[0].slice(0, lines[0].indexOf(',"link":{'));
  const entry = await sha256(utf8(`${entryText}}`));
  const first = await checkLink(key, parsed[0], 1, "");
  must(first.checkpoint === undefined && first.lines === undefined, "link", "bundle line 1 is linked as a checkpoint");
  must(first.entry_sha256 === entry, "link", "bundle line 1 is not what its link was signed over");

  const last = await checkLink(key, parsed[1], 2, await sha256(utf8(lines[0])));
  const alone = !parsed[1].envelope && !parsed[1].request && !parsed[1].response;
  must(isTrue(last.checkpoint), "incomplete", "the bundle does not end with a checkpoint");
  must(alone && last.lines === 1n && last.entry_sha256 === undefined, "link", "the checkpoint does not close one line");

  return { entry, sha256: await sha256(utf8(source)), ...(await checkCall(key, parsed[0])) };
};
