// Keys, DSSE envelopes and Ed25519, as strict as the command line: WebCrypto computes the equation, and what
// browsers leave open (small or mixed order, canonical S and R) is decided here with plain integers.

const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const CURVE_D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;
const SQRT_M1 = 19681161376707505956807079304988542015446066515923890162744021073123829784752n;

const mod = (value) => ((value % P) + P) % P;

const power = (base, exponent) => {
  let result = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) {
    if (e & 1n) result = mod(result * b);
  }
  return result;
};

const littleEndian = (bytes) => BigInt(`0x${hex(Uint8Array.from(bytes).reverse())}`);

// Extended coordinates of an encoded point; null when it is none or not canonical.
const point = (bytes) => {
  const encoded = littleEndian(bytes);
  const sign = encoded >> 255n;
  const y = encoded & ((1n << 255n) - 1n);
  if (y >= P) return null;
  const u = mod(y * y - 1n);
  const v = mod(CURVE_D * y * y + 1n);
  let x = mod(u * power(v, 3n) * power(u * power(v, 7n), (P - 5n) / 8n));
  const check = mod(v * x * x);
  if (check === mod(-u)) x = mod(x * SQRT_M1);
  else if (check !== u) return null;
  if (x === 0n && sign === 1n) return null;
  if ((x & 1n) !== sign) x = mod(-x);
  return [x, y, 1n, mod(x * y)];
};

const add = ([x1, y1, z1, t1], [x2, y2, z2, t2]) => {
  const a = mod((y1 - x1) * (y2 - x2));
  const b = mod((y1 + x1) * (y2 + x2));
  const c = mod(2n * CURVE_D * t1 * t2);
  const d = mod(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
};

const isNeutral = ([x, y, z]) => x === 0n && y === z;
const small = (p) => isNeutral([1, 2, 3].reduce((sum) => add(sum, sum), p));

const primeOrder = (p) => {
  let sum = [0n, 1n, 1n, 0n];
  for (let q = p, e = ORDER; e > 0n; e >>= 1n, q = add(q, q)) if (e & 1n) sum = add(sum, q);
  return isNeutral(sum);
};

const SPKI = Uint8Array.from([0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]);

const readKey = async (pem) => {
  const found = /^-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END PUBLIC KEY-----\n?$/.exec(pem);
  must(found, "key", "the public key is not one PEM block");
  const der = fromBase64(found[1].replaceAll("\n", ""), "key", "the public key");
  must(der.length === 44 && same(der.subarray(0, 12), SPKI), "key", "the public key is not an Ed25519 key");
  const raw = der.subarray(12);
  const at = point(raw);
  must(at && !small(at) && primeOrder(at), "key", "the public key is a point of small or mixed order");
  const id = await sha256(der);
  // Without Ed25519 the rest is still checked, and the verdict can at best be that it was not checked here.
  const handle = await subtle()
    .importKey("raw", raw, { name: "Ed25519" }, false, ["verify"])
    .catch(() => null);
  return { id, handle };
};

const preAuthentication = (payload) =>
  concat([utf8(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `), payload]);

const verifies = async (key, signature, message) => {
  if (signature.length !== 64) return false;
  if (littleEndian(signature.subarray(32)) >= ORDER) return false;
  const r = point(signature.subarray(0, 32));
  if (!r || small(r)) return false;
  return key.handle === null || subtle().verify({ name: "Ed25519" }, key.handle, signature, message);
};

// Opens an envelope with exactly one signature, by this key, and gives its payload and statement.
const openEnvelope = async (key, envelope, what) => {
  const { payloadType, payload, signatures } = shape(
    envelope,
    ["s:payloadType", "s:payload", "a:signatures"],
    "statement",
    what,
  );
  must(signatures.length === 1, "statement", `${what} has ${signatures.length} signatures instead of one`);
  const { keyid, sig } = shape(signatures[0], ["s:keyid", "s:sig"], "statement", `the signature of ${what}`);
  must(keyid === key.id, "signature", `${what} is signed by another key`);
  must(payloadType === PAYLOAD_TYPE, "statement", `${what} has another payload type`);
  const bytes = fromBase64(payload, "statement", `the payload of ${what}`);
  const signature = fromBase64(sig, "signature", `the signature of ${what}`);
  must(await verifies(key, signature, preAuthentication(bytes)), "signature", `the signature of ${what} does not verify`);
  const source = text(bytes, "statement", `the payload of ${what}`);
  const statement = parseJson(source, "statement", `the payload of ${what}`);
  const body = shape(statement, ["s:_type", "a:subject", "s:predicateType", "o:predicate"], "statement", what);
  must(body._type === "https://in-toto.io/Statement/v1", "statement", `${what} is no in-toto statement`);
  const subjects = body.subject.map((item) => {
    const subject = shape(item, ["s:name", "o:digest"], "statement", `a subject of ${what}`);
    must(subject.digest.size === 1, "statement", `a subject of ${what} has not one digest`);
    const [algorithm, value] = [...subject.digest][0];
    must(typeof value === "string", "statement", `a digest of ${what} is no text`);
    return `${subject.name} ${algorithm}:${value}`;
  });
  return { bytes, source, statement, subjects, type: body.predicateType, predicate: body.predicate };
};
