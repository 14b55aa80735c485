// Bytes, text and digests. Everything throws `Refusal`, so that a fault is never taken for a pass.

class Refusal extends Error {
  constructor(code, detail) {
    super(detail);
    this.code = code;
  }
}

// What this browser cannot compute: neither good nor bad.
class Unsupported extends Error {}

const refuse = (code, detail) => {
  throw new Refusal(code, detail);
};
const must = (holds, code, detail) => {
  if (!holds) refuse(code, detail);
};

const utf8 = (text) => new TextEncoder().encode(text);

const text = (bytes, code, what) => {
  try {
    // ignoreBOM: a mark at the front is content and must survive.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse(code, `${what} is not UTF-8`);
  }
};

const concat = (parts) => {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
};

const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const isHex = (value, lengths) =>
  typeof value === "string" && lengths.includes(value.length) && /^[0-9a-f]+$/.test(value);

const base64Of = (bytes) => {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x8000) {
    binary += String.fromCharCode.apply(null, bytes.subarray(i, i + 0x8000));
  }
  return btoa(binary);
};

// Canonical only: `atob` takes white space, missing padding and stray bits.
const fromBase64 = (value, code, what) => {
  let binary;
  try {
    binary = atob(value);
  } catch {
    refuse(code, `${what} is not base64`);
  }
  must(btoa(binary) === value, code, `${what} is not canonical base64`);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
};

const subtle = () => {
  if (!globalThis.crypto || !globalThis.crypto.subtle) {
    throw new Unsupported("this browser gives this page no WebCrypto");
  }
  return globalThis.crypto.subtle;
};

const digest = async (algorithm, bytes) => hex(new Uint8Array(await subtle().digest(algorithm, bytes)));
const sha256 = (bytes) => digest("SHA-256", bytes);
