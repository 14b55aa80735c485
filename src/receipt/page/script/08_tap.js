// TAP 13 and 14 as `report/tap.rs` reads it. A subtest stands before its parent's own line, four spaces deeper.

// White space as Unicode has it: what trims differs between languages.
const SPACE = "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const LEADING = new RegExp(`^${SPACE}+`);
const TRAILING = new RegExp(`${SPACE}+$`);
const trimStart = (value) => value.replace(LEADING, "");
const trimEnd = (value) => value.replace(TRAILING, "");

const planOf = (line) => {
  const found = /^1\.\.([0-9]{1,20})/.exec(line);
  if (!found) return null;
  const after = trimStart(line.slice(found[0].length));
  const count = BigInt(found[1]);
  return (after === "" || after.startsWith("#")) && count < 1n << 64n ? count : null;
};

// A description and its directive: the first `#` that no backslash escapes and that names one.
const splitDirective = (value) => {
  let description = "";
  for (let at = 0; at < value.length; at += 1) {
    const c = value[at];
    if (c === "\\" && (value[at + 1] === "\\" || value[at + 1] === "#")) {
      at += 1;
      description += value[at];
    } else if (c === "#") {
      const directive = trimStart(value.slice(at + 1));
      const word = /^(?:skip|todo(?=$|[ \t:]))/i.exec(directive);
      if (word) return [trimEnd(description), word[0].toLowerCase()];
      description += c;
    } else {
      description += c;
    }
  }
  return [trimEnd(description), ""];
};

const resultOf = (line) => {
  const ok = line.startsWith("ok");
  if (!ok && !line.startsWith("not ok")) return null;
  const rest = line.slice(ok ? 2 : 6);
  if (rest !== "" && !LEADING.test(rest)) return null;
  const [, digits, after] = /^([0-9]*)([^]*)$/.exec(trimStart(rest));
  // `ok 2nd` has a description that begins with a digit.
  const number = digits !== "" && /^(?:$|[ \t#-])/.test(after) ? digits.replace(/^0+/, "") : null;
  const text = trimStart(after).replace(/^(?:- |-)/, "");
  const [description, directive] = splitDirective(text);
  const kind = directive === "todo" ? "warned" : !ok ? "failed" : directive === "skip" ? "skipped" : "passed";
  return { description, class: kind, number };
};

const readTap = (source) => {
  const newLevel = () => ({ plan: null, results: 0n, numbers: new Set(), highest: 0n, cases: [] });
  const levels = [newLevel()];
  let begun = false;
  let broken = false;
  let bailed = false;
  let yaml = null;
  let afterResult = null;
  let count = 0;
  const levelAt = (depth) => {
    if (depth >= MAX_SUITES) unreadable("subtests nest too deep");
    while (levels.length <= depth) levels.push(newLevel());
    return levels[depth];
  };
  const faulty = (level) => level.plan !== null && (level.plan !== level.results || level.highest > level.plan);
  const numbered = (level, digits) => {
    // Zero, and what is no 64-bit number.
    const number = digits.length > 20 ? 0n : BigInt(digits);
    if (number === 0n || number >= 1n << 64n) broken = true;
    else if (level.numbers.has(number)) broken = true;
    else level.numbers.add(number);
    if (number < 1n << 64n && number > level.highest) level.highest = number;
  };
  const result = (depth, line) => {
    count += 1;
    if (count > MAX_CASES) unreadable("too many tests");
    levelAt(depth);
    const below = levels.splice(depth + 1);
    if (below.some(faulty)) broken = true;
    const children = below.flatMap((level) => level.cases);
    const level = levels[depth];
    level.results += 1n;
    if (line.number !== null) numbered(level, line.number);
    if (children.length === 0) {
      level.cases.push({ name: cutBytes(line.description, MAX_RAW_NAME), class: line.class, duration: null });
      return;
    }
    if (line.class === "failed" && !children.some((child) => child.class === "failed")) broken = true;
    for (const child of children) level.cases.push({ ...child, name: joinNames(line.description, child.name) });
  };

  const lines = source.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  for (const raw of lines) {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    const content = line.replace(/^ +/, "");
    const indent = line.length - content.length;
    if (yaml !== null) {
      if (indent === yaml && trimEnd(content) === "...") yaml = null;
      continue;
    }
    const prior = afterResult;
    afterResult = null;
    if (prior !== null && prior === indent - 2 && trimEnd(content) === "---") {
      yaml = indent;
      continue;
    }
    if (content.startsWith("Bail out!")) {
      bailed = true;
      begun = true;
      continue;
    }
    if (indent % 4 !== 0) continue;
    const depth = indent / 4;
    const plan = planOf(content);
    const found = plan === null ? resultOf(content) : null;
    if (content.startsWith("TAP version ")) {
      if (depth === 0 && !["13", "14"].includes(trimEnd(content.slice(12)))) unreadable("a TAP version other than 13 and 14");
      begun = true;
    } else if (plan !== null) {
      begun = true;
      const level = levelAt(depth);
      if (level.plan !== null) broken = true;
      level.plan = plan;
    } else if (found) {
      result(depth, found);
      afterResult = indent;
    }
  }
  if (!begun) unreadable("neither a version line nor a plan: this is no TAP");
  const [top, ...orphans] = levels;
  if (top.plan === null || faulty(top)) broken = true;
  const cases = [...top.cases];
  for (const level of orphans) {
    if (level.results > 0n || (level.plan !== null && level.plan > 0n)) broken = true;
    cases.push(...level.cases);
  }
  if (yaml !== null || bailed) broken = true;
  if (bailed) cases.push({ name: "bail out", class: "failed", duration: null });
  return { cases, broken };
};
