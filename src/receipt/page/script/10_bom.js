// The BOM beside the evidence: its attachments are the evidence, and its serial number follows from its content.

const BOM_NAMESPACE = "3b15ce666b735f698526bef3b6aa1293";

const fromHex = (value) => Uint8Array.from(value.match(/../g), (pair) => Number.parseInt(pair, 16));

const uuid5 = async (namespace, name) => {
  const bytes = fromHex((await digest("SHA-1", concat([fromHex(namespace), utf8(name)]))).slice(0, 32));
  bytes[6] = (bytes[6] & 0x0f) | 0x50;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
};

const checkBom = async (evidence) => {
  const bom = parseJson(evidence.bom, "bom_parse", "the BOM");
  const serial = bom instanceof Map && bom.get("serialNumber");
  must(typeof serial === "string", "bom_schema", "the BOM has no serial number");
  const rest = new Map(bom);
  rest.delete("serialNumber");
  const derived = `urn:uuid:${await uuid5(BOM_NAMESPACE, await sha256(utf8(canonicalJson(rest))))}`;
  must(serial === derived, "bom_serial", "the serial number does not follow from the BOM's content");
  const attached = new Map();
  const components = bom.get("components");
  must(Array.isArray(components), "bom_schema", "the BOM has no components");
  for (const component of components) {
    const data = component instanceof Map && component.get("data");
    if (!Array.isArray(data) || !(data[0] instanceof Map) || !(data[0].get("contents") instanceof Map)) continue;
    const attachment = data[0].get("contents").get("attachment");
    if (attachment instanceof Map) attached.set(component.get("bom-ref"), attachment.get("content"));
  }
  const parts = {
    "line:1": evidence.bundle.slice(0, evidence.bundle.indexOf("\n")),
    "statement:test-result": evidence.test_result.slice(0, -1),
    "statement:pr-receipt": evidence.receipt.slice(0, -1),
  };
  for (const [name, source] of Object.entries(parts)) {
    must(attached.get(name) === base64Of(utf8(source)), "attachment_evidence_mismatch", `the BOM's attachment ${name} is not the evidence`);
  }
  return { sha256: await sha256(utf8(evidence.bom)), serial };
};
