// The two statements of a receipt, and what ties them to the signed run.

const OUTCOMES = ["unspecified", "completed", "setup_failed", "timed_out", "protocol_error"];
const SHA1_OR_256 = [40, 64];
const REASONS = ["not-utf8", "symlink", "submodule", "configured", "path", "too-large"];

// Members in exactly this order, nothing more: the compact text must come out again.
const exact = (opened, order, code, what) => {
  must(encodePlainJson(opened.statement) === opened.source, code, `${what} is not in the one exact encoding`);
  const walk = (value, names, path) => {
    must(value instanceof Map, code, `${path} is not an object`);
    must([...value.keys()].join() === names.map((n) => n[0]).join(), code, `${path} does not have exactly its members in order`);
    for (const [name, inner] of names) {
      const content = value.get(name);
      if (Array.isArray(inner) && inner[0] === "each") {
        must(Array.isArray(content), code, `${path}.${name} is not a list`);
        content.forEach((item, i) => walk(item, inner[1], `${path}.${name}[${i}]`));
      } else if (Array.isArray(inner)) {
        walk(content, inner, `${path}.${name}`);
      } else {
        const fits = inner === "i" ? typeof content === "bigint" && content >= 0n : typeof content === "string";
        must(inner === "list" ? Array.isArray(content) && content.every((t) => typeof t === "string") : fits, code, `${path}.${name} has another type`);
      }
    }
  };
  walk(opened.predicate, order, what);
};

const RECEIPT_ORDER = [
  ["version", "i"],
  ["repository", [["url", "s"]]],
  ["pull_request", [["number", "i"], ["head_repository", "s"], ["head_sha", "s"], ["base_ref", "s"], ["base_sha", "s"]]],
  ["tested", [
    ["kind", "s"], ["commit_sha", "s"], ["tree_sha", "s"], ["files", "i"], ["manifest_sha256", "s"], ["executable", "i"],
    ["excluded", ["each", [["path", "s"], ["git_blob", "s"], ["reason", "s"]]]],
    ["added", ["each", [["path", "s"], ["sha256", "s"]]]],
  ]],
  ["config", [["source", "s"], ["git_blob", "s"]]],
  ["tests_changed", "list"],
  ["workflow", [["event", "s"], ["path", "s"], ["git_blob", "s"], ["run_id", "i"], ["run_attempt", "i"], ["run_url", "s"]]],
  ["run", [["line", "i"], ["entry_sha256", "s"], ["record_sha256", "s"]]],
  ["bundle_sha256", "s"],
  ["reports", ["each", [["step", "i"], ["source", "s"], ["format", "s"], ["sha256", "s"]]]],
  ["test_result_sha256", "s"],
  ["summary", [["result", "s"], ["passed", "i"], ["warned", "i"], ["failed", "i"], ["skipped", "i"]]],
  ["signing_key", [["id", "s"], ["kind", "s"]]],
  ["created_unix_ms", "i"],
];

const plain = (value) => {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, content]) => [name, plain(content)]));
  return Array.isArray(value) ? value.map(plain) : value;
};

const isUrl = (value) => {
  const rest = /^https?:\/\/([A-Za-z0-9_.~:\/-]*)$/.exec(value);
  const parts = rest ? rest[1].split("/") : [];
  return value.length <= 2048 && parts.length >= 2 && !parts.some((part) => ["", ".", ".."].includes(part));
};

const isBranch = (value) =>
  value !== "" &&
  utf8(value).length <= 255 &&
  !/^[-\/]|[\/.]$|\.\.|@\{|[\u0000-\u0020\u007f-\u009f~^:?*[\\]/.test(value);

// The form of what CI states, as `event.rs` has it.
const checkBinding = ({ repository, pull_request: request, tested, config, workflow }) => {
  must(isUrl(repository.url), "statement", "the repository's URL is not of its form");
  must(request.number >= 1n && request.number <= 1n << 52n, "statement", "the pull request's number is not of its form");
  must(request.head_repository === "" || isUrl(request.head_repository), "statement", "the head repository's URL is not of its form");
  must(isBranch(request.base_ref), "statement", "the base branch is not of its form");
  const ids = [request.head_sha, request.base_sha, tested.commit_sha, tested.tree_sha];
  must(ids.every((id) => isHex(id, [request.head_sha.length]) && isHex(id, SHA1_OR_256)), "statement", "a commit or tree is no object ID");
  must(["head", "merge"].includes(tested.kind), "statement", "the receipt says neither head nor merge");
  must(tested.kind !== "head" || tested.commit_sha === request.head_sha, "git_commit", "the tested commit is not the head");
  must(["base", "tested", "workflow"].includes(config.source), "statement", "the configuration is from nowhere known");
  must(!["pull_request_target", "workflow_run"].includes(workflow.event), "statement", "the workflow's event is never taken");
  must(workflow.run_id <= 1n << 52n && workflow.run_attempt <= 1n << 52n, "statement", "the workflow's run is not of its form");
  const page = workflow.run_id === 0n ? "" : `${repository.url}/actions/runs/${workflow.run_id}`;
  must(workflow.run_url === "" || workflow.run_url === page, "statement", "the URL of the workflow's run is not of its form");
};

const checkReports = async (reports, project) => {
  const seen = new Set();
  for (const { step, source, format, sha256: stated } of reports) {
    must(["junit", "tap"].includes(format), "statement", "a report has a format this page does not know");
    must(/^(?:artifact:.+|stdout:[1-9][0-9]?)$/s.test(source), "statement", "a report is from nowhere known");
    must(!seen.has(`${format}:${source}`), "statement", "a report is listed twice");
    seen.add(`${format}:${source}`);
    const found = reportBytes(source, project);
    must((found === null ? "" : await sha256(found)) === stated, "binding_mismatch", `the report ${source} is not the one in the signed answer`);
    const at = source.startsWith("stdout:") ? source.slice(7) : String(project.steps.length);
    must(found === null || String(step) === at, "binding_mismatch", `the report ${source} is of another step`);
  }
};

// The bytes a report was read from: never from anywhere but the signed answer.
const reportBytes = (source, project) => {
  const [kind, name] = [source.slice(0, source.indexOf(":")), source.slice(source.indexOf(":") + 1)];
  if (kind === "artifact") {
    const found = project.artifacts.find((item) => item.path === name);
    return found ? found.content : null;
  }
  const step = kind === "stdout" && /^[1-9][0-9]{0,3}$/.test(name) && project.steps[Number(name) - 1];
  return step ? step.stdout : null;
};

const gitBlob = (bytes, length) =>
  digest(length === 64 ? "SHA-256" : "SHA-1", concat([utf8(`blob ${bytes.length}\0`), bytes]));

const byUtf8 = (a, b) => {
  const [x, y] = [utf8(a), utf8(b)];
  const at = x.findIndex((byte, i) => byte !== y[i]);
  return at < 0 ? x.length - y.length : x[at] - (at < y.length ? y[at] : -1);
};

// Each file that was sent, as coming from the commit or added to it; the digest over the former.
const checkFiles = async (receipt, project) => {
  const added = new Map(receipt.tested.added.map((item) => [item.path, item.sha256]));
  must(added.size === receipt.tested.added.length, "binding_mismatch", "an added file is listed twice");
  const paths = project.files.map((file) => file.path);
  must(new Set(paths).size === paths.length, "binding_mismatch", "a file was sent twice");
  const sent = [];
  for (const file of project.files) {
    const bytes = utf8(file.content);
    const entry = { path: file.path, bytes: bytes.length, sha256: await sha256(bytes), added: added.has(file.path) };
    if (entry.added) must(added.get(file.path) === entry.sha256, "binding_mismatch", `the added file ${file.path} is not what was sent`);
    else entry.git_blob = await gitBlob(bytes, receipt.tested.commit_sha.length);
    sent.push(entry);
  }
  const own = sent.filter((file) => !file.added);
  must(sent.length - own.length === added.size, "binding_mismatch", "a file listed as added was not sent");
  must(BigInt(own.length) === receipt.tested.files, "binding_mismatch", "another number of files was sent");
  const ordered = [...own].sort((one, other) => byUtf8(one.path, other.path));
  const fields = ordered.flatMap((file) => [["path", file.path], ["git_blob", file.git_blob], ["sha256", file.sha256]]);
  const manifest = await sha256(tlv("plimsoll-attest.tree-manifest.v1", [["files", own.length], ...fields]));
  must(manifest === receipt.tested.manifest_sha256, "binding_mismatch", "the digest over the files is not the stated one");
  for (const item of receipt.tested.excluded) {
    must(REASONS.includes(item.reason) && isHex(item.git_blob, SHA1_OR_256), "statement", "a file is left out without a known reason");
    must(!own.some((file) => file.path === item.path), "binding_mismatch", `${item.path} is listed as left out and was sent`);
  }
  return sent;
};

const checkTestResult = (receipt, opened, what) => {
  must(opened.type === "https://in-toto.io/attestation/test-result/v0.1", "statement", `${what} is another kind of statement`);
  must(encodePlainJson(opened.statement) === opened.source, "statement", `${what} is not in the one exact encoding`);
  const stated = shape(
    opened.predicate,
    ["s:result", "a:configuration", "s:url?", "a:passedTests", "a:warnedTests", "a:failedTests"],
    "statement",
    what,
  );
  const configuration = [
    [receipt.workflow.path, "gitBlob", receipt.workflow.git_blob],
    [".plimsoll/receipt.toml", "gitBlob", receipt.config.git_blob],
    ...receipt.reports.map((report) => [report.source.replace(/^artifact:/, ""), "sha256", report.sha256]),
  ];
  const named = stated.configuration.map((item) => {
    const { name, digest: digests } = shape(item, ["s:name", "o:digest"], "statement", `the configuration of ${what}`);
    return [name, ...[...digests].flat()];
  });
  // A part without a digest has no place in that list.
  const wanted = configuration.filter(([, , value]) => value !== "");
  must(JSON.stringify(named) === JSON.stringify(wanted), "binding_mismatch", `${what} names another configuration`);
  const { run_url: page, run_attempt: attempt } = receipt.workflow;
  must(stated.url === (page ? `${page}/attempts/${attempt}` : undefined), "binding_mismatch", `${what} names another job`);
  return stated;
};

const checkReceipt = async (key, run, receiptSource, testResultSource) => {
  const lines = { "receipt.dsse.json": receiptSource, "test-result.dsse.json": testResultSource };
  const opened = {};
  for (const [what, source] of Object.entries(lines)) {
    must(source.endsWith("\n"), "statement", `${what} does not end with a newline`);
    const envelope = parseJson(source.slice(0, -1), "statement", what);
    must(encodeJson(envelope) === source.slice(0, -1), "statement", `${what} is not in the one exact encoding`);
    opened[what] = await openEnvelope(key, envelope, what);
  }
  const statement = opened["receipt.dsse.json"];
  const tests = opened["test-result.dsse.json"];
  must(statement.type === "urn:plimsoll-attest:pr-receipt:v1", "statement", "receipt.dsse.json is another kind of statement");
  exact(statement, RECEIPT_ORDER, "statement", "the receipt");
  const receipt = plain(statement.predicate);

  const { tested, pull_request: request } = receipt;
  must(receipt.version === 1n, "statement", "the receipt has a version this page does not know");
  checkBinding(receipt);
  must(["ephemeral", "file"].includes(receipt.signing_key.kind), "statement", "the receipt names no kind of key");

  const subjects = [
    `git+${receipt.repository.url}@refs/pull/${request.number}/${tested.kind} gitCommit:${tested.commit_sha}`,
    `tree gitTree:${tested.tree_sha}`,
    `run-record sha256:${run.record.record_sha256}`,
  ];
  must(JSON.stringify(tests.subjects) === JSON.stringify(subjects), "binding_mismatch", "the test result is about something else");
  subjects.push(`bundle.jsonl sha256:${run.sha256}`);
  must(JSON.stringify(statement.subjects) === JSON.stringify(subjects), "binding_mismatch", "the receipt is about something else");
  const bound = [
    ["run.line", receipt.run.line, 1n],
    ["run.entry_sha256", receipt.run.entry_sha256, run.entry],
    ["run.record_sha256", receipt.run.record_sha256, run.record.record_sha256],
    ["bundle_sha256", receipt.bundle_sha256, run.sha256],
    ["test_result_sha256", receipt.test_result_sha256, await sha256(tests.bytes)],
    ["signing_key.id", receipt.signing_key.id, key.id],
  ];
  for (const [name, stated, computed] of bound) {
    must(stated === computed, "binding_mismatch", `${name} of the receipt is not what was computed here`);
  }
  await checkReports(receipt.reports, run.response.project);
  must(receipt.created_unix_ms >= run.record.ended_unix_ms, "binding_mismatch", "the receipt is older than the run");
  return {
    ...receipt,
    receipt_sha256: await sha256(statement.bytes),
    files: await checkFiles(receipt, run.request.project),
    stated: checkTestResult(receipt, tests, "test-result.dsse.json"),
  };
};
