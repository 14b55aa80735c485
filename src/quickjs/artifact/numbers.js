// A small en-US number format for an engine built without Intl. It covers grouping and currency, not locales: it is
// no ICU, and is installed only where nothing better exists.
(() => {
  "use strict";
  if (typeof Intl !== "undefined" || (1234).toLocaleString() !== "1234") return;
  const { toFixed, valueOf } = Number.prototype;
  const { toUpperCase } = String.prototype;
  const apply = Reflect.apply;
  const [text, number, integer, floor, RangeFault, TypeFault] = [String, Number, BigInt, Math.floor, RangeError, TypeError];
  const define = Object.defineProperty;
  const symbols = { __proto__: null, USD: "$", CAD: "$", AUD: "$", EUR: "€", GBP: "£", JPY: "¥", CNY: "¥", INR: "₹" };

  const digits = (options, name, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const count = floor(number(value));
    if (!(count >= 0 && count <= 100)) throw new RangeFault(name + " value is out of range.");
    return count;
  };
  const settings = (given) => {
    const options = given === undefined ? { __proto__: null } : given;
    const style = options.style === "currency" ? "currency" : "decimal";
    let currency;
    if (style === "currency") {
      if (options.currency === undefined) throw new TypeFault("Currency code is required with currency style.");
      currency = apply(toUpperCase, text(options.currency), []);
    }
    const low = style === "currency" ? 2 : 0;
    const high = style === "currency" ? 2 : 3;
    let min = digits(options, "minimumFractionDigits", undefined);
    let max = digits(options, "maximumFractionDigits", undefined);
    if (min === undefined) min = max === undefined || max > low ? low : max;
    if (max === undefined) max = min > high ? min : high;
    if (min > max) throw new RangeFault("maximumFractionDigits value is out of range.");
    return { __proto__: null, options, style, currency, min, max, grouping: options.useGrouping !== false };
  };
  const format = (value, to) => {
    if (value !== value || value === Infinity || value === -Infinity) return text(value);
    let sign = value < 0;
    const size = sign ? -value : value;
    // From 1e21 on toFixed answers with an exponent; such a number is whole.
    let plain = size >= 1e21 ? text(integer(size)) : apply(toFixed, size, [to.max]);
    let point = 0;
    while (point < plain.length && plain[point] !== ".") point++;
    let fraction = "";
    for (let i = point + 1; i < plain.length; i++) fraction += plain[i];
    for (; fraction.length < to.min; ) fraction += "0";
    let keep = fraction.length;
    while (keep > to.min && fraction[keep - 1] === "0") keep--;
    let out = "";
    let zero = true;
    for (let i = 0; i < point; i++) {
      if (i > 0 && to.grouping && (point - i) % 3 === 0) out += ",";
      out += plain[i];
      zero = zero && plain[i] === "0";
    }
    for (let i = 0; i < keep; i++) {
      out += (i === 0 ? "." : "") + fraction[i];
      zero = zero && fraction[i] === "0";
    }
    if (zero) sign = false;
    const symbol = to.style === "currency" ? (symbols[to.currency] ?? to.currency + " ") : "";
    return (sign ? "-" : "") + symbol + out;
  };

  function NumberFormat(locales, options) {
    const to = settings(options);
    const self = new.target === undefined ? { __proto__: NumberFormat.prototype } : this;
    formats.set(self, { to, bound: undefined });
    return self;
  }
  // A private table with captured methods: replacing WeakMap.prototype does not reach it.
  const formats = (() => {
    const table = new WeakMap();
    const { get, set } = WeakMap.prototype;
    return {
      get: (self) => {
        const found = apply(get, table, [self]);
        if (found === undefined) throw new TypeFault("not an Intl.NumberFormat");
        return found;
      },
      set: (self, value) => apply(set, table, [self, value]),
    };
  })();
  const hidden = (object, name, value) => define(object, name, { __proto__: null, value, writable: true, configurable: true });

  define(NumberFormat.prototype, "format", {
    __proto__: null,
    configurable: true,
    get() {
      const entry = formats.get(this);
      return (entry.bound ??= (value) => format(number(value), entry.to));
    },
  });
  hidden(NumberFormat.prototype, "resolvedOptions", function resolvedOptions() {
    return { locale: "en-US", ...formats.get(this).to.options };
  });
  hidden(globalThis, "Intl", {});
  hidden(Intl, "NumberFormat", NumberFormat);
  hidden(Number.prototype, "toLocaleString", function toLocaleString(locales, options) {
    return format(apply(valueOf, this, []), settings(options));
  });
})();
