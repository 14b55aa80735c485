// Strict JSON: no repeated member, no member that differs only in case, integers only, bounded depth.
// Objects become Maps in their written order, numbers BigInts.

const MAX_DEPTH = 64;

const parseJson = (source, code, what) => {
  let at = 0;
  const bad = (why) => refuse(code, `${what} is not strict JSON: ${why} at character ${at + 1}`);
  const space = () => {
    while (at < source.length && " \t\n\r".includes(source[at])) at += 1;
  };
  const string = () => {
    const start = at;
    const end = /[^"\\\u0000-\u001f]*/y;
    for (at += 1; ; at += 2) {
      if (at >= source.length) bad("a string that does not end");
      end.lastIndex = at;
      at += end.exec(source)[0].length;
      if (source[at] !== "\\") break;
    }
    if (source[at] !== '"') bad("a string that does not end or has a control character");
    at += 1;
    let value;
    try {
      value = JSON.parse(source.slice(start, at));
    } catch {
      bad("a string that does not end or an unknown escape");
    }
    if (/\p{Surrogate}/u.test(value)) bad("half of a surrogate pair");
    return value;
  };
  const value = (depth) => {
    if (depth > MAX_DEPTH) bad("too deep");
    space();
    const c = source[at];
    if (c === '"') return string();
    if (c === "{" || c === "[") {
      at += 1;
      const close = c === "{" ? "}" : "]";
      const object = new Map();
      const list = [];
      const folded = new Set();
      space();
      if (source[at] === close) {
        at += 1;
        return c === "{" ? object : list;
      }
      for (;;) {
        space();
        if (c === "{") {
          if (source[at] !== '"') bad("no member name");
          const name = string();
          if (folded.has(name.toLowerCase())) bad("a repeated member");
          folded.add(name.toLowerCase());
          space();
          if (source[at] !== ":") bad("no colon");
          at += 1;
          object.set(name, value(depth + 1));
        } else {
          list.push(value(depth + 1));
        }
        space();
        if (source[at] === ",") {
          at += 1;
        } else if (source[at] === close) {
          at += 1;
          return c === "{" ? object : list;
        } else {
          bad("no comma and no end");
        }
      }
    }
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (source.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    const number = /-?(?:0|[1-9][0-9]{0,19})(?![0-9.eE])/y;
    number.lastIndex = at;
    const found = number.exec(source);
    if (!found) bad("not a value");
    at += found[0].length;
    return BigInt(found[0]);
  };
  const out = value(1);
  space();
  if (at !== source.length) bad("something after the end");
  return out;
};

const ESCAPES = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r" };

const quoted = (value, escaped) =>
  `"${value.replace(escaped, (c) => ESCAPES[c] || `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;

const encodeWith = (value, escaped, sorted) => {
  if (value instanceof Map) {
    const names = [...value.keys()];
    // Member names are ASCII wherever sorting is asked for, so this is byte order.
    if (sorted) names.sort((a, b) => (a < b ? -1 : 1));
    return `{${names.map((k) => `${quoted(k, escaped)}:${encodeWith(value.get(k), escaped, sorted)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map((item) => encodeWith(item, escaped, sorted)).join(",")}]`;
  return typeof value === "string" ? quoted(value, escaped) : String(value);
};

// The encoding of bundle lines and envelopes: members in the order given.
const encodeJson = (value) => encodeWith(value, /["\\\u0000-\u001f<>&\u2028\u2029]/g, false);

// The encoding of a receipt's two statements: the same without the escapes that matter in HTML only.
const encodePlainJson = (value) => encodeWith(value, /["\\\u0000-\u001f]/g, false);

// RFC 8785 for what a BOM holds: sorted ASCII names, strings, booleans, small integers.
const canonicalJson = (value) => encodeWith(value, /["\\\u0000-\u001f]/g, true);

// An object with exactly these members; optional ones end in `?`. Types: s string, i integer, b boolean, o object, a list.
const shape = (value, members, code, what) => {
  must(value instanceof Map, code, `${what} is not an object`);
  const known = new Map(members.map((member) => [member.slice(2).replace(/\?$/, ""), member]));
  for (const name of value.keys()) must(known.has(name), code, `${what} has an unknown member "${name}"`);
  const out = {};
  for (const [name, member] of known) {
    const content = value.get(name);
    if (content === undefined) {
      must(member.endsWith("?"), code, `${what} lacks "${name}"`);
      continue;
    }
    const fits = {
      s: typeof content === "string",
      i: typeof content === "bigint",
      b: typeof content === "boolean",
      o: content instanceof Map,
      a: Array.isArray(content),
    }[member[0]];
    must(fits, code, `"${name}" of ${what} has another type`);
    out[name] = content;
  }
  return out;
};
