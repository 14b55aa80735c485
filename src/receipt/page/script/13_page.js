// Checks the evidence, writes the page again from it, compares, and shows the verdict.

const ownText = call(getter(Node.prototype, "textContent"), its("currentScript"));

// No page of ours has such an element; a form's own members can be covered by what is in it.
const COVERING = "[name]:not(meta), form, img, iframe, frame, object, embed, applet, input, button, select, textarea";

// Refuses a page in which a name could stand in front of a member, and empties it first: then none does.
const uncover = () => {
  if (does("querySelector", COVERING) === null) return;
  call(Element.prototype.replaceChildren, its("documentElement"));
  refuse("page", "the page has an element whose name can stand in for a part of the browser");
};

const ASCII_ONLY = /[<>&\u007f-\uffff]/g;
const islandOf = (evidence) =>
  JSON.stringify(evidence).replace(ASCII_ONLY, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const MEMBERS = ["format", "bundle", "test_result", "receipt", "public_key", "bom"];

const readIsland = (page) => {
  const islands = page.querySelectorAll("script[type='application/json']");
  must(islands.length === 1, "page", "the page does not carry its evidence exactly once");
  const source = islands[0].textContent;
  let evidence = null;
  try {
    evidence = JSON.parse(source);
  } catch {
    refuse("page", "the evidence of the page cannot be read");
  }
  const formed =
    evidence !== null &&
    typeof evidence === "object" &&
    Object.keys(evidence).join() === MEMBERS.join() &&
    MEMBERS.every((name) => typeof evidence[name] === "string");
  must(formed && evidence.format === FORMAT, "page", "the evidence of the page has another form");
  must(islandOf(evidence) === source, "page", "the evidence of the page is not in its one encoding");
  return evidence;
};

// An element and those around it, as far as a reader needs them to find it. The names are the file's own, so they are cut.
const place = (node) => {
  const names = [];
  for (let at = node; at instanceof Element && names.length < 4; at = call(getter(Node.prototype, "parentNode"), at)) {
    const [name, id] = [call(getter(Element.prototype, "localName"), at), call(getter(Element.prototype, "id"), at)];
    names.unshift(`${name}${id && "#"}${id}`.slice(0, 60));
  }
  return names.join(" > ") || "the top";
};

// The first thing in which two trees differ, in words; null when they are the same.
const difference = (found, wanted) => {
  if (found.nodeType !== wanted.nodeType || found.nodeName !== wanted.nodeName || found.namespaceURI !== wanted.namespaceURI) {
    return `another element at ${place(found.parentNode)}`;
  }
  if (found.nodeType !== 1) {
    return found.nodeValue === wanted.nodeValue ? null : `another text at ${place(found.parentNode)}`;
  }
  const attributes = (node) => [...node.attributes].map((item) => [item.namespaceURI, item.name, item.value].join("\0")).sort();
  if (attributes(found).join("\x01") !== attributes(wanted).join("\x01")) return `other attributes at ${place(found)}`;
  const [some, others] = [found.childNodes, wanted.childNodes];
  for (let i = 0; i < Math.max(some.length, others.length); i += 1) {
    if (!some[i] || !others[i]) return `${some[i] ? "something added" : "something missing"} at ${place(found)}`;
    const inner = difference(some[i], others[i]);
    if (inner) return inner;
  }
  return null;
};

// A shadow tree stands in front of an element's own content and no copy shows it. A second one cannot be attached.
const hasShadow = (node) => {
  if (node.shadowRoot) return true;
  try {
    does("createElement", node.localName).attachShadow({ mode: "open" });
  } catch {
    return false;
  }
  try {
    node.attachShadow({ mode: "open" });
    return false;
  } catch {
    return true;
  }
};

// Puts the page that was written from the evidence where the file's own stood, its script excepted.
const putInPlace = (tree) => {
  const before = its("body");
  const body = does("createElement", "body");
  body.append(...[...tree.body.childNodes].filter((node) => !(node.localName === "script" && !node.type)));
  before.replaceWith(does("adoptNode", body));
  const hidden = [before, ...before.querySelectorAll("*")].find(hasShadow);
  must(hidden === undefined, "page", "the page hides a second one in front of itself");
};

const comparePage = async (page, view, evidence, style) => {
  const source = async (value) => `'sha256-${base64Of(fromHex(await sha256(utf8(value))))}'`;
  const csp =
    `default-src 'none'; script-src ${await source(ownText)}; style-src ${await source(style)}; ` +
    "base-uri 'none'; form-action 'none'";
  const wanted = render(TEMPLATE, { ...view, csp, style, island: islandOf(evidence), script: ownText });
  const tree = new DOMParser().parseFromString(wanted, "text/html");
  const found = difference(page, tree.documentElement);
  must(found === null, "page", `the page shows something else than its evidence says: ${found}`);
  putInPlace(tree);
};

const CHECKS = [
  ["key", "The key is a sound Ed25519 key"],
  ["bundle", "The bundle: signatures, links, checkpoint, request, result and record digests"],
  ["receipt", "Both statements: signatures, members, and every digest that ties them to the run"],
  ["results", "The results: the reports in the signed answer, read again, give them"],
  ["bom", "The BOM: its attachments are the evidence, its serial number follows from its content"],
  ["page", "Everything this page shows, written again from the evidence"],
];

const OPEN = [
  "Not checked here: that the files are those of the commit (needs a clone)",
  "Not checked here: who made the receipt",
];

const element = (name, content, className) => {
  const out = does("createElement", name);
  if (className) out.className = className;
  out.append(...[content].flat());
  return out;
};

const sign = (mark, sentence, className) => element("li", [element("span", mark, "sign"), element("span", sentence)], className);

const tell = (title, sentences, items) => {
  const heading = element("h2", title);
  heading.id = "check-title";
  const list = element("ul", items, "checks");
  return [heading, ...sentences.map((sentence) => element("p", sentence)), ...(items.length ? [list] : [])];
};

// A page that was refused keeps nothing of what it said: what a stranger put there must not stand beside the verdict.
const showRefusal = (fault, done, styleHolds) => {
  const code = fault instanceof Refusal ? fault.code : "internal";
  const items = CHECKS.map(([name, sentence]) =>
    done.has(name) ? sign("✓", sentence, "ok") : sign("✗", sentence, "fault"),
  ).slice(0, done.size + 1);
  // Goes into text nodes, so only what acts or hides has to be named.
  const detail = Array.from(fault.message, (c) => (HTML[c] ? c : shownPlain(c))).join("");
  const box = element(
    "section",
    tell(
      "Refused",
      [
        `${code}: ${detail}.`,
        "Nothing else of this page is shown, because it cannot be relied on. A browser extension that changes pages can cause this: open the " +
          "file without it. If it is refused again, treat the page as forged and run plimsoll-attest pr-receipt verify on the receipt directory.",
      ],
      items,
    ),
    "check",
  );
  box.setAttribute("role", "alert");
  const head = does("createElement", "head");
  const title = element("title", "REFUSED – plimsoll receipt");
  head.append(title);
  const style = styleHolds ? does("querySelector", "style") : null;
  if (style) head.append(style);
  const bar = element("header", element("h1", "plimsoll receipt"), "top");
  const root = its("documentElement");
  root.replaceChildren(head, element("body", [bar, element("main", box)]));
  for (const { name } of [...root.attributes]) root.removeAttribute(name);
  root.lang = "en";
  root.dataset.verdict = "refused";
};

const show = (verdict, title, sentences, items) => {
  does("getElementById", "verdict").replaceChildren(...tell(title, sentences, items));
  uncovered();
  its("documentElement").dataset.verdict = verdict;
};

const start = () => {
  try {
    uncover();
    check().catch((fault) => showRefusal(fault, new Set(), false));
  } catch (fault) {
    showRefusal(fault, new Set(), false);
  }
};

const check = async () => {
  // Taken before anything waits, so that what is compared is what the file holds.
  const page = asWritten();
  const doctype = its("doctype");
  const plain = doctype !== null && doctype.publicId === "" && doctype.systemId === "" && its("compatMode") === "CSS1Compat";
  const lone = plain && its("childNodes", Node.prototype).length === 2;
  const styles = does("querySelectorAll", "style");
  const done = new Set();
  let styleHolds = false;
  try {
    styleHolds = styles.length === 1 && (await sha256(utf8(styles[0].textContent))) === STYLE_SHA256;
    must(lone && its("characterSet") === "UTF-8", "page", "something stands before or after the page");
    must(styleHolds, "page", "the style of the page was changed");
    const evidence = readIsland(page);
    const key = await readKey(evidence.public_key);
    done.add("key");
    const run = await checkBundle(key, evidence.bundle);
    run.streams = await Promise.all(
      run.response.project.steps.map((step) => Promise.all([sha256(step.stdout), sha256(step.stderr)])),
    );
    done.add("bundle");
    const receipt = await checkReceipt(key, run, evidence.receipt, evidence.test_result);
    done.add("receipt");
    const outcome = checkResults(receipt, run);
    done.add("results");
    const bom = await checkBom(evidence);
    done.add("bom");
    await comparePage(page, viewOf(evidence, receipt, run, outcome, bom), evidence, styles[0].textContent);
    done.add("page");
    const items = CHECKS.map(([, sentence]) => sign("✓", sentence, "ok")).concat(OPEN.map((sentence) => sign("–", sentence, "open")));
    if (key.handle === null) {
      show("unchecked", "Not checked here", [
        "This browser has no Ed25519 in WebCrypto, so no signature was checked. Digests and text agree, which alone proves nothing.",
      ], items.slice(CHECKS.length));
    } else {
      const passed = receipt.summary.result !== "FAILED";
      const title = passed ? "Valid: checked in this browser" : "Valid evidence, and the tests did not pass";
      show("valid", title, [
        `The evidence in this page holds together under key ${key.id.slice(0, 12)}…, as computed in this browser, and the page says what ` +
          `the evidence says. ${passed ? "The tests passed." : "The tests did not pass."}`,
      ], items);
    }
  } catch (fault) {
    if (fault instanceof Unsupported) {
      show("unchecked", "Not checked here", [`Nothing was checked: ${fault.message}. Save the file and open it from disk, or use the command.`], []);
    } else {
      showRefusal(fault, done, styleHolds);
    }
  }
};

call(EventTarget.prototype.addEventListener, document, "DOMContentLoaded", start);
