// The stored messages: a bounded protobuf reader for the fields that digests cover, and those digests.

// number: [name, kind]. Kinds: s string, y bytes, i signed 32 or 64 bit, u unsigned, b boolean, or a message table;
// a third entry marks a repeated field.
const RULE = { 1: ["mode", "s"], 2: ["identities", "s", true] };
const FILE = { 1: ["path", "s"], 2: ["content", "s"] };
const PROJECT = {
  1: ["files", FILE, true],
  2: ["steps", "s", true],
  4: ["artifacts", "s", true],
  5: ["grant_profile", "s"],
};
const REQUEST = {
  1: ["protocol", "u"],
  2: ["minimum_isolation", "s"],
  3: ["trace_id", "s"],
  4: ["timeout_ms", "i"],
  5: ["software_rule", RULE],
  10: ["javascript", {}],
  11: ["project", PROJECT],
  12: ["module", {}],
  13: ["cell", {}],
};
const RECORD = {
  1: ["version", "u"],
  2: ["request_sha256", "s"],
  3: ["result_sha256", "s"],
  4: ["provider", "s"],
  5: ["isolation", "s"],
  6: ["environment", "s"],
  7: ["policy", "s"],
  8: ["started_unix_ms", "i"],
  9: ["ended_unix_ms", "i"],
  10: ["session", "s"],
  11: ["sequence", "u"],
  12: ["previous_sha256", "s"],
  13: ["record_sha256", "s"],
  14: ["software_identity", "s"],
  15: ["software_rule_id", "s"],
  16: ["unanswered", "s"],
};
const STEP = {
  1: ["command", "s"],
  2: ["stdout", "y"],
  3: ["stderr", "y"],
  4: ["exit_code", "i"],
  5: ["timed_out", "b"],
  6: ["duration_ms", "i"],
  7: ["stdout_truncated", "b"],
  8: ["stderr_truncated", "b"],
};
const ARTIFACT = { 1: ["path", "s"], 2: ["content", "y"] };
const RESULT = {
  1: ["steps", STEP, true],
  3: ["outcome", "i"],
  4: ["artifacts", ARTIFACT, true],
  6: ["outcome_detail", "s"],
  7: ["artifacts_truncated", "b"],
};
const RESPONSE = {
  1: ["sandbox", "s"],
  2: ["isolation", "s"],
  3: ["duration_ms", "i"],
  4: ["record", RECORD],
  5: ["software_identity", "s"],
  6: ["environment", "s"],
  10: ["javascript", {}],
  11: ["project", RESULT],
  12: ["module", {}],
  13: ["cell", {}],
};

const EMPTY = { s: "", y: new Uint8Array(), i: 0n, u: 0n, b: false };

const decode = (table, bytes, what) => {
  const bad = (why) => refuse("stored", `the stored ${what} ${why}`);
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (at >= bytes.length) bad("is cut short");
      const byte = bytes[at];
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        if (value >= 1n << 64n) bad("has a number past 64 bits");
        return value;
      }
    }
    return bad("has a number that does not end");
  };
  const chunk = () => {
    const length = varint();
    if (length > BigInt(bytes.length - at)) bad("is cut short");
    at += Number(length);
    return bytes.subarray(at - Number(length), at);
  };
  const out = {};
  for (const [name, kind, repeated] of Object.values(table)) {
    out[name] = repeated ? [] : typeof kind === "string" ? EMPTY[kind] : null;
  }
  const seen = new Set();
  while (at < bytes.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const wire = Number(tag & 7n);
    if (number === 0 || tag >> 32n) bad("has a field number that cannot be");
    const field = table[number];
    let content;
    if (wire === 0) content = varint();
    else if (wire === 2) content = chunk();
    else if (wire === 1 || wire === 5) {
      at += wire === 1 ? 8 : 4;
      if (at > bytes.length) bad("is cut short");
    } else bad("has a wire type that is not used");
    if (!field) continue;
    const [name, kind, repeated] = field;
    if (wire !== ("iub".includes(kind) ? 0 : 2)) bad(`has another wire type for ${name}`);
    // Nothing that writes receipts repeats one: two readers could take different ones.
    if (!repeated && seen.has(number)) bad(`repeats ${name}`);
    seen.add(number);
    let value;
    if (kind === "s") value = text(content, "stored", `${name} of the ${what}`);
    else if (kind === "y") value = content;
    else if (kind === "i") value = BigInt.asIntN(64, content);
    else if (kind === "u") value = content;
    else if (kind === "b") value = content !== 0n;
    else value = decode(kind, content, what);
    if (repeated) out[name].push(value);
    else out[name] = value;
  }
  return out;
};

// The length-prefixed encoding of a domain and named fields.
const tlv = (domain, fields) => {
  const parts = [];
  const push = (value) => {
    const bytes = value instanceof Uint8Array ? value : utf8(String(value));
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(bytes.length));
    parts.push(length, bytes);
  };
  push(domain);
  for (const [name, content] of fields) {
    push(name);
    push(content);
  }
  return concat(parts);
};

const requestDigest = (request) => {
  const { project } = request;
  const rule = request.software_rule || { mode: "", identities: [] };
  const fields = [
    ["protocol", request.protocol],
    ["minimum_isolation", request.minimum_isolation],
    ["timeout_ms", request.timeout_ms],
    ["software_mode", rule.mode],
    ["software_identities", rule.identities.length],
    ...rule.identities.map((identity) => ["software_identity", identity]),
    ["kind", "project"],
    ["grant_profile", project.grant_profile],
    ["files", project.files.length],
    ...project.files.flatMap((file) => [["file_path", file.path], ["file_content", file.content]]),
    ["steps", project.steps.length],
    ...project.steps.map((step) => ["step_command", step]),
    ["artifacts", project.artifacts.length],
    ...project.artifacts.map((path) => ["artifact_path", path]),
  ];
  return sha256(tlv("plimsoll.run-request.v2", fields));
};

const resultDigest = ({ project }) => {
  const fields = [
    ["kind", "project"],
    ["outcome", project.outcome],
    ["outcome_detail", project.outcome_detail],
    ["artifacts_truncated", project.artifacts_truncated],
    ["steps", project.steps.length],
    ...project.steps.flatMap((step) => [
      ["step_command", step.command],
      ["step_exit_code", step.exit_code],
      ["step_timed_out", step.timed_out],
      ["step_stdout", step.stdout],
      ["step_stderr", step.stderr],
      ["step_stdout_truncated", step.stdout_truncated],
      ["step_stderr_truncated", step.stderr_truncated],
    ]),
    ["artifacts", project.artifacts.length],
    ...project.artifacts.flatMap((item) => [["artifact_path", item.path], ["artifact_content", item.content]]),
  ];
  return sha256(tlv("plimsoll.run-result.v1", fields));
};

// Fields of a version 2 record, in digest order.
const RECORD_FIELDS = [
  "request_sha256", "result_sha256", "provider", "isolation", "environment", "policy", "software_identity",
  "software_rule_id", "started_unix_ms", "ended_unix_ms", "session", "sequence", "previous_sha256",
];

const recordDigest = (record) =>
  sha256(tlv("plimsoll.run-record.v2", RECORD_FIELDS.map((name) => [name, record[name]])));

const ruleId = async ({ mode, identities }) => {
  const distinct = new Set(identities).size === identities.length;
  const formed = identities.every((identity) => /^[A-Za-z0-9._:/@+-]{1,256}$/.test(identity));
  const counted = { "": identities.length === 0, exact: identities.length === 1, approved: identities.length >= 1 };
  must(distinct && formed && counted[mode] === true && identities.length <= 32, "stored", "the software rule is not valid");
  if (identities.length === 0) return "";
  if (identities.length === 1) return `exact:${identities[0]}`;
  return `approved:sha256:${await sha256(utf8([...identities].sort().join("\0")))}`;
};
