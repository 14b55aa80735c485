// What the signed answer says of the tests, read again as `outcome.rs` reads it: the statement's own word is not taken.

const MAX_NAME = 512;
const MAX_NAMES = 10000;

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const cleanName = (name) => {
  const plain = name.replace(UNSAFE, "\ufffd");
  const kept = cutBytes(plain, MAX_NAME);
  return kept.length === plain.length ? plain : `${kept}…`;
};

const uniqueNames = () => {
  const seen = new Set();
  const next = new Map();
  return (name) => {
    let given = name;
    while (seen.has(given)) {
      const number = next.get(name) || 2;
      next.set(name, number + 1);
      given = `${name} #${number}`;
    }
    seen.add(given);
    return given;
  };
};

const readReport = (format, bytes) => {
  if (bytes.length > MAX_REPORT) unreadable("a report has at most 8 MiB");
  const source = text(bytes, "report_parse", "a report");
  if (source.includes("\0")) unreadable("a NUL character");
  return format === "junit" ? readJunit(source) : readTap(source);
};

const evaluate = (run, project, reports) => {
  const unique = uniqueNames();
  const tests = [];
  const take = (name, kind, duration) => tests.push({ name: unique(cleanName(name)), class: kind, duration });
  const ended = (step) => step.exit_code === 0n && !step.timed_out;
  let failed =
    project.outcome !== 1n ||
    !project.steps.every((step, i) => ended(step) && step.command === run.steps[i]) ||
    project.steps.length < run.steps.length;
  for (const { format, source } of reports) {
    const bytes = reportBytes(source, project);
    const step = source.startsWith("stdout:") ? project.steps[Number(source.slice(7)) - 1] : null;
    const cut = source.startsWith("stdout:") ? step && step.stdout_truncated : project.artifacts_truncated;
    if (bytes === null || cut) failed = true;
    if (bytes === null) continue;
    let parsed = { cases: [], broken: true };
    try {
      parsed = readReport(format, bytes);
    } catch (fault) {
      // A report that cannot be read fails the result; it says nothing against the receipt.
      if (!(fault instanceof Refusal)) throw fault;
    }
    if (parsed.broken) failed = true;
    for (const item of parsed.cases) take(item.name, item.class, item.duration);
  }
  if (reports.length === 0) {
    for (const step of project.steps) {
      take(step.command, ended(step) ? "passed" : "failed", step.duration_ms < 0n ? null : step.duration_ms * 1000n);
    }
  }
  const counts = { passed: 0n, warned: 0n, failed: 0n, skipped: 0n };
  for (const test of tests) counts[test.class] += 1n;
  if (counts.passed === 0n || counts.failed > 0n) failed = true;
  return { result: failed ? "FAILED" : counts.warned > 0n ? "WARNED" : "PASSED", counts, tests };
};

// The names as the statement lists them: failed ones first where there is no room for all.
const statedLists = (tests) => {
  let room = MAX_NAMES;
  const lists = {};
  for (const kind of ["failed", "warned", "passed"]) {
    const all = tests.filter((test) => test.class === kind).map((test) => test.name);
    lists[kind] = all.slice(0, room);
    room -= lists[kind].length;
    if (all.length > lists[kind].length) lists[kind].push(`…and ${all.length - lists[kind].length} more`);
  }
  return lists;
};

// The results that were signed, against those that the signed answer gives.
const checkResults = (receipt, run) => {
  const outcome = evaluate(run.request.project, run.response.project, receipt.reports);
  const { summary, stated } = receipt;
  const differs = (what) => refuse("result_mismatch", `the reports in the signed answer, read again, give ${what}`);
  for (const [name, count] of Object.entries(outcome.counts)) {
    if (summary[name] !== count) differs(`${count} ${name} tests instead of ${summary[name]}`);
  }
  if (summary.result !== outcome.result || stated.result !== outcome.result) differs(`the result ${outcome.result}`);
  for (const [name, list] of Object.entries(statedLists(outcome.tests))) {
    if (JSON.stringify(list) !== JSON.stringify(stated[`${name}Tests`])) differs(`other names of ${name} tests`);
  }
  return outcome;
};
