// JUnit XML as `report/junit.rs` reads it: strict, no document type, no entity of a document's own. The browser's own XML
// reader is not used: it refuses the control characters that runners write, and reads document types.

const MAX_REPORT = 8 << 20;
const MAX_CASES = 50000;
const MAX_SUITES = 32;
const MAX_ELEMENTS = 128;
const MAX_RAW_NAME = 2048;
const MAX_ATTRIBUTES = 64;
const MAX_DECLARATION = 1024;

const unreadable = (why) => refuse("report_parse", `a report cannot be read: ${why}`);

// The part that fits in so many bytes of UTF-8, never half a character.
const cutBytes = (value, most) =>
  value.length * 3 <= most ? value : value.slice(0, new TextEncoder().encodeInto(value, new Uint8Array(most)).read);

const joinNames = (outer, inner) =>
  cutBytes(`${cutBytes(outer, MAX_RAW_NAME)} > ${cutBytes(inner, MAX_RAW_NAME)}`, MAX_RAW_NAME);

const FAILURES = ["failure", "error", "rerunFailure", "rerunError"];

const REFERENCES = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

// The character a reference stands for; null for one that is not predefined.
const referenced = (word) => {
  if (Object.hasOwn(REFERENCES, word)) return REFERENCES[word];
  const found = /^#(?:x([0-9a-fA-F]{1,32})|([0-9]{1,32}))$/.exec(word);
  if (!found) return null;
  const code = Number(found[1] === undefined ? found[2] : `0x${found[1]}`);
  const none = code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || code === 0xfffe || code === 0xffff;
  return none ? null : String.fromCodePoint(code);
};

const expanded = (raw) =>
  raw.replace(/[\n\r\t]|&([^;]*;?)/g, (piece, word) => {
    if (word === undefined) return " ";
    const char = word.endsWith(";") ? referenced(word.slice(0, -1)) : null;
    return char === null ? unreadable("a reference that is not predefined") : char;
  });

// Each attribute's name and raw value, in order.
function* attributesIn(source) {
  const one = /[ \t\r\n]*([^ \t\r\n][^ \t\r\n=]*)[ \t\r\n]*=[ \t\r\n]*(?:"([^"]*)"|'([^']*)')/y;
  const blank = /[ \t\r\n]*$/y;
  for (let at = 0; ; at = one.lastIndex) {
    blank.lastIndex = at;
    if (blank.test(source)) return;
    one.lastIndex = at;
    const match = one.exec(source);
    if (!match) unreadable("an attribute is not valid");
    yield [match[1], match[2] === undefined ? match[3] : match[2]];
  }
}

const attributesOf = (source) => {
  const found = new Map();
  for (const [name, raw] of attributesIn(source)) {
    if (found.size >= MAX_ATTRIBUTES) unreadable("an element has too many attributes");
    if (found.has(name) || raw.includes("<")) unreadable("an attribute is not valid");
    found.set(name, expanded(raw));
  }
  return found;
};

const checkDeclaration = (source) => {
  for (const [name, raw] of attributesIn(source)) {
    if (name !== "encoding") continue;
    if (!/^(utf-8|us-ascii)$/i.test(raw)) unreadable("an encoding other than UTF-8");
    return;
  }
};

// Seconds as a decimal number, some runners with commas, as microseconds.
const microseconds = (value) => {
  const plain = value.replaceAll(",", "");
  const found = /^([0-9]{0,19})(?:\.([0-9.]*))?$/.exec(plain);
  if (!found || plain === "") return null;
  const digits = `${found[2] || ""}000000`.slice(0, 6);
  return digits.includes(".") ? null : BigInt(found[1] || "0") * 1000000n + BigInt(digits);
};

const closedTag = (source, from) => {
  let quote = "";
  for (let at = from; at < source.length; at += 1) {
    const c = source[at];
    if (quote) quote = c === quote ? "" : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === ">") return at;
  }
  return unreadable("not well-formed XML");
};

const classOf = (item) => {
  if (item.todo) return "warned";
  if (item.failed) return "failed";
  if (item.skipped) return "skipped";
  return item.flaky ? "warned" : "passed";
};

const readJunit = (whole) => {
  const source = whole.replace(/^\ufeff/, "");
  const cases = [];
  const open = [];
  let ended = false;
  let broken = false;
  const outside = (any) => {
    if (any && open.length === 0) unreadable("text outside the root element");
  };

  const start = (name, found) => {
    if (ended) unreadable("a second root element");
    if (open.length >= MAX_ELEMENTS) unreadable("elements nest too deep");
    const inside = open[open.length - 1];
    const suite = name === "testsuites" || name === "testsuite";
    const value = (key) => found.get(key) || "";
    if (suite && (!inside || inside.kind === "suite")) {
      const depth = (inside ? inside.depth : 0) + 1;
      if (depth > MAX_SUITES) unreadable("suites nest too deep");
      const around = inside ? inside.path : "";
      const own = name === "testsuite" ? value("name") : "";
      const path = own === "" ? around : around === "" ? cutBytes(own, MAX_RAW_NAME) : joinNames(around, own);
      open.push({ name, kind: "suite", depth, path });
    } else if (!inside) {
      unreadable("the root is neither testsuites nor testsuite");
    } else if (inside.kind === "suite" && name === "testcase") {
      const kind = value("classname") === "test" ? "" : value("classname");
      const outer = inside.path || kind;
      const shown = outer ? joinNames(outer, value("name")) : cutBytes(value("name"), MAX_RAW_NAME);
      open.push({ name, kind: "case", shown, duration: microseconds(value("time")) });
    } else if (suite || name === "testcase") {
      unreadable("a suite or test inside something else");
    } else {
      if (inside.kind === "case") {
        if (FAILURES.includes(name)) inside.failed = true;
        else if (name === "flakyFailure" || name === "flakyError") inside.flaky = true;
        else if (name === "skipped") {
          inside.skipped = true;
          inside.todo = inside.todo || value("type") === "todo";
        }
      } else if (inside.kind === "suite" && FAILURES.includes(name)) {
        // A failure of no test, such as of what runs before the tests.
        broken = true;
      }
      open.push({ name, kind: "other" });
    }
  };
  const end = () => {
    const item = open.pop();
    ended = open.length === 0;
    if (item.kind !== "case") return;
    if (cases.length >= MAX_CASES) unreadable("too many tests");
    cases.push({ name: item.shown, class: classOf(item), duration: item.duration });
  };
  const upTo = (mark, from) => {
    const found = source.indexOf(mark, from);
    return found < 0 ? unreadable("not well-formed XML") : found + mark.length;
  };

  for (let at = 0; at < source.length; ) {
    if (source[at] === "&") {
      const found = /&([^;&<]*);/y;
      found.lastIndex = at;
      const match = found.exec(source);
      if (!match || referenced(match[1]) === null) unreadable("a reference that is not predefined");
      outside(true);
      at += match[0].length;
    } else if (source[at] !== "<") {
      const plain = /[^<&]+/y;
      plain.lastIndex = at;
      const [words] = plain.exec(source);
      outside(/[^ \t\r\n\f]/.test(words));
      at += words.length;
    } else if (source.startsWith("<\u0021--", at)) {
      at = upTo("-->", at + 4);
    } else if (source.startsWith("<![CDATA[", at)) {
      outside(true);
      at = upTo("]]>", at + 9);
    } else if (source.startsWith("<!", at)) {
      unreadable("a document type is not read");
    } else if (source.startsWith("<?", at)) {
      if (source[at + 2] === ">") unreadable("not well-formed XML");
      const stop = upTo("?>", at + 2);
      if (/^<\?xml[ \t\r\n]/.test(source.slice(at, at + 6))) {
        const inner = source.slice(at + 2, stop - 2);
        if (cutBytes(inner, MAX_DECLARATION) !== inner) unreadable("the XML declaration is too long");
        checkDeclaration(source.slice(at + 5, stop - 2));
      }
      at = stop;
    } else if (source.startsWith("</", at)) {
      const stop = upTo(">", at + 2);
      const name = source.slice(at + 2, stop - 1).replace(/([^ \t\r\n])[ \t\r\n]+$/, "$1");
      if (open.length === 0 || open[open.length - 1].name !== name) unreadable("not well-formed XML");
      end();
      at = stop;
    } else {
      const stop = closedTag(source, at + 1);
      const empty = source[stop - 1] === "/" && stop - 1 > at;
      const inner = source.slice(at + 1, empty ? stop - 1 : stop);
      const name = /^[^ \t\r\n]*/.exec(inner)[0];
      start(name, attributesOf(inner.slice(name.length)));
      if (empty) end();
      at = stop + 1;
    }
  }
  if (!ended) unreadable("the document ends before its root does");
  return { cases, broken };
};
