// What the page shows, from the evidence alone. `page/view.rs` makes the same from the receipt; the two must agree
// in every character, or the page refuses itself.

const TIER_MEANS = {
  none: "The code ran with nothing between it and the machine.",
  process: "A process of its own, and limits the process itself enforces.",
  container: "A container: its own view of the system, and the kernel of the machine.",
  kernel: "A kernel of its own between the code and the kernel of the machine.",
  vm: "A virtual machine of its own.",
};
const OUTCOME_MEANS = {
  completed: "The run completed.",
  setup_failed: "The run failed while it was set up.",
  timed_out: "The run was ended by its time budget.",
  protocol_error: "The run ended without an answer that could be read.",
  unspecified: "How the run ended is not stated.",
};
const REASON_MEANS = {
  "not-utf8": "not UTF-8 text, which is all that can be sent",
  symlink: "a symbolic link",
  submodule: "a submodule",
  configured: "excluded by the configuration",
  path: "a path that cannot be sent",
  "too-large": "over the size limit of a file",
};
const CONFIG_MEANS = {
  base: "the configuration file of the base commit",
  tested: "the configuration file of the tested commit, which the pull request can change",
  workflow: "flags in the workflow file",
};

const hiddenRanges = [
  [0x00, 0x1f], [0x7f, 0xa0], [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c], [0x115f, 0x1160], [0x1680, 0x1680],
  [0x17b4, 0x17b5], [0x180b, 0x180f], [0x2000, 0x200f], [0x2028, 0x202f], [0x205f, 0x206f], [0x2800, 0x2800],
  [0x3164, 0x3164], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffb], [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];
const isHidden = (c) => hiddenRanges.some(([from, to]) => c >= from && c <= to);
const HTML = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

// One character as it is shown: one that could act or hide is named instead.
const shownChar = (char, block) => {
  if (HTML[char]) return HTML[char];
  const code = char.codePointAt(0);
  if (code === 0x20 || !isHidden(code) || (block && (code === 0x0a || code === 0x09))) return char;
  return `<b class="x">U+${code.toString(16).toUpperCase().padStart(4, "0")}</b>`;
};

const shown = (value) => Array.from(value, (char) => shownChar(char, false)).join("");

// Where no mark-up can stand, as in the title.
const shownPlain = (value) =>
  Array.from(value, (char) => {
    const code = char.codePointAt(0);
    if (HTML[char] || code === 0x20 || !isHidden(code)) return HTML[char] || char;
    return `\\u{${code.toString(16)}}`;
  }).join("");

// Guest output: its UTF-8 characters, and each byte that is none by its number.
const shownBytes = (bytes) => {
  const out = [];
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at];
    const size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    let char = null;
    try {
      char = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(at, at + size));
    } catch {
      char = null;
    }
    // An ill-formed lead byte can still take valid bytes after it with it: exactly one character counts.
    if (char !== null && Array.from(char).length === 1) {
      out.push(shownChar(char, true));
      at += size;
    } else {
      out.push(`<b class="x">0x${lead.toString(16).toUpperCase().padStart(2, "0")}</b>`);
      at += 1;
    }
  }
  return out.join("");
};

const excerpt = (bytes, head, tail) => {
  if (bytes.length <= head + tail) return { text: shownBytes(bytes), omitted: "" };
  const omitted = bytes.length - head - tail;
  const gap = `\n<b class="x">… ${grouped(omitted)} bytes …</b>\n`;
  return { text: shownBytes(bytes.subarray(0, head)) + gap + shownBytes(bytes.subarray(bytes.length - tail)), omitted: grouped(omitted) };
};

const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const orNothing = (value) => (BigInt(value) === 0n ? "" : grouped(value));
const millis = (value) =>
  value < 0n ? `${value} ms` : `${grouped(value / 1000n)}.${String(value % 1000n).padStart(3, "0")} s`;
const micros = (value) => {
  if (value === null) return "";
  const ms = `${value % 1000n}`.padStart(3, "0");
  return value < 1000000n ? `${value / 1000n}.${ms} ms` : millis(value / 1000n);
};
const moment = (value) =>
  value < 0n || value > 253402300799999n
    ? `${value} ms after 1970`
    : new Date(Number(value)).toISOString().replace("T", " ").replace("Z", " UTC");

// How many failed tests are named beside the result.
const FAILING = 5;
// Beyond this many a list of tests that need no look is closed at first; beyond that many it is cut.
const OPEN_TESTS = 30;
const SHOWN_TESTS = 5000;

const cutCount = (list) => {
  const more = list.length > 0 && /^…and ([1-9][0-9]{0,8}) more$/.exec(list[list.length - 1]);
  return more ? BigInt(list.length - 1) + BigInt(more[1]) : BigInt(list.length);
};

// Whether a file sent under one path stands where a file of the commit would: at it, below it or above it.
const covers = (one, other) => one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);

const runReasons = (project, summary) => {
  const out = [];
  if (project.outcome !== 1n) out.push(OUTCOME_MEANS[OUTCOMES[Number(project.outcome)]] || OUTCOME_MEANS.unspecified);
  project.steps.forEach((step, i) => {
    if (step.timed_out) out.push(`Step ${i + 1} was ended by its time budget.`);
    else if (step.exit_code !== 0n) out.push(`Step ${i + 1} ended with exit code ${step.exit_code}.`);
  });
  if (project.artifacts_truncated) out.push("The files the run gave back were cut.");
  if (summary.passed === 0n) out.push("No test passed.");
  return out.map((reason) => ({ reason }));
};

const barOf = (summary) => {
  const order = ["passed", "warned", "failed", "skipped"];
  const total = order.reduce((sum, name) => sum + summary[name], 0n);
  let before = 0n;
  return order.flatMap((name) => {
    const from = total === 0n ? 0n : (before * 1000n) / total;
    before += summary[name];
    const to = total === 0n ? 0n : (before * 1000n) / total;
    return to > from ? [{ class: name, x: String(from), width: String(to - from) }] : [];
  });
};

const viewOf = (evidence, receipt, run, outcome, bom) => {
  const { record, request, response } = run;
  const { project } = response;
  const { pull_request: pull, tested, workflow, summary } = receipt;
  const ofClass = (name) => outcome.tests.filter((test) => test.class === name);
  const own = receipt.files.filter((file) => !file.added);
  const sent = new Map(receipt.files.map((file) => [file.path, file]));
  const bomBytes = utf8(evidence.bom);
  const bomText = excerpt(bomBytes, 49152, 16384);
  const changed = cutCount(receipt.tests_changed);
  return {
    result: summary.result,
    class: summary.result.toLowerCase(),
    repository: receipt.repository.url,
    repository_name: receipt.repository.url.split("/").slice(3).join("/") || receipt.repository.url,
    number: String(pull.number),
    head_sha: pull.head_sha,
    head_short: pull.head_sha.slice(0, 12),
    head_repository: pull.head_repository,
    base_ref: pull.base_ref,
    base_sha: pull.base_sha,
    merge: tested.kind === "merge",
    commit_sha: tested.commit_sha,
    commit_short: tested.commit_sha.slice(0, 12),
    tree_sha: tested.tree_sha,
    passed: grouped(summary.passed),
    warned: grouped(summary.warned),
    failed: grouped(summary.failed),
    skipped: grouped(summary.skipped),
    counts: ["passed", "warned", "failed", "skipped"].map((name) => ({
      class: summary[name] === 0n ? "zero" : name,
      name,
      count: grouped(summary[name]),
    })),
    failing: ofClass("failed").slice(0, FAILING).map(({ name }) => ({ name })),
    failing_more: orNothing(Math.max(0, ofClass("failed").length - FAILING)),
    bar: barOf(summary),
    reasons: runReasons(project, summary),
    tier: record.isolation,
    tier_means: TIER_MEANS[record.isolation] || "A word this page does not know: it counts as weaker than none.",
    tiers: TIERS.map((name) => ({ name, here: name === record.isolation })),
    floor: request.minimum_isolation === "none" ? "" : request.minimum_isolation,
    provider: record.provider,
    software: record.software_identity,
    rule: record.software_rule_id,
    environment: record.environment,
    policy: record.policy,
    started: moment(record.started_unix_ms),
    ended: moment(record.ended_unix_ms),
    took: millis(record.ended_unix_ms - record.started_unix_ms),
    timeout: request.timeout_ms === 0n ? "is the provider’s own" : millis(request.timeout_ms),
    outcome_means: OUTCOME_MEANS[OUTCOMES[Number(project.outcome)]] || OUTCOME_MEANS.unspecified,
    groups: ["failed", "warned", "passed", "skipped"].flatMap((name) => {
      const tests = ofClass(name);
      if (tests.length === 0) return [];
      return [{
        class: name,
        count: grouped(tests.length),
        noun: tests.length === 1 ? "test" : "tests",
        open: name === "failed" || name === "warned" || tests.length <= OPEN_TESTS,
        tests: tests.slice(0, SHOWN_TESTS).map((test) => ({ name: test.name, took: micros(test.duration) })),
        more: orNothing(Math.max(0, tests.length - SHOWN_TESTS)),
      }];
    }),
    reports: receipt.reports.map((report) => ({
      source: report.source,
      format: report.format,
      step: String(report.step),
      sha256: report.sha256,
    })),
    steps: project.steps.map((step, i) => ({
      n: String(i + 1),
      command: step.command,
      class: step.timed_out || step.exit_code !== 0n ? "failed" : "passed",
      ended: step.timed_out ? "timed out" : `exit ${step.exit_code}`,
      took: millis(step.duration_ms),
      streams: [
        ["Standard output", step.stdout, step.stdout_truncated, run.streams[i][0]],
        ["Standard error", step.stderr, step.stderr_truncated, run.streams[i][1]],
      ].map(([label, bytes, truncated, sha]) => ({
        label,
        bytes: grouped(bytes.length),
        truncated,
        shown: bytes.length > 0,
        sha256: sha,
        ...excerpt(bytes, 4096, 12288),
      })),
    })),
    sent: grouped(own.length),
    in_commit: grouped(own.length + tested.excluded.length),
    few_files: own.length <= 40,
    executable: orNothing(tested.executable),
    files: own.map((file) => ({ path: file.path, bytes: grouped(file.bytes), git_blob: file.git_blob })),
    left_out_count: orNothing(tested.excluded.length),
    left_out: tested.excluded.map((item) => ({
      path: item.path,
      reason_means: REASON_MEANS[item.reason] || item.reason,
      git_blob: item.git_blob,
    })),
    added_count: orNothing(tested.added.length),
    added: tested.added.map((item) => ({
      path: item.path,
      bytes: grouped(sent.get(item.path).bytes),
      sha256: item.sha256,
      over: tested.excluded.some((out) => covers(item.path, out.path)),
    })),
    changed_count: orNothing(changed),
    changed: receipt.tests_changed.map((path) => ({ path })),
    config_means: CONFIG_MEANS[receipt.config.source] || receipt.config.source,
    config_blob: receipt.config.git_blob,
    workflow_path: workflow.path,
    workflow_blob: workflow.git_blob,
    event: workflow.event,
    run_id: String(workflow.run_id),
    run_attempt: String(workflow.run_attempt),
    run_url: workflow.run_url,
    created: moment(receipt.created_unix_ms),
    key_id: receipt.signing_key.id,
    ephemeral: receipt.signing_key.kind === "ephemeral",
    record_sha256: record.record_sha256,
    request_sha256: record.request_sha256,
    result_sha256: record.result_sha256,
    entry_sha256: run.entry,
    bundle_sha256: run.sha256,
    manifest_sha256: tested.manifest_sha256,
    test_result_sha256: receipt.test_result_sha256,
    receipt_sha256: receipt.receipt_sha256,
    bom_sha256: bom.sha256,
    serial_number: bom.serial,
    bom_bytes: grouped(bomBytes.length),
    bom_shown: bomBytes.length > 0,
    bom_text: bomText.text,
    bom_omitted: bomText.omitted,
  };
};
