// Covers the page before anything else is done: what a file says of itself, a verdict too, is not shown before it was checked.

// An element's name can stand in front of any member of `document`, so its members come from the prototypes.
const call = (member, self, ...values) => Reflect.apply(member, self, values);
const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
const its = (name, prototype = Document.prototype) => call(getter(prototype, name), document);
const does = (name, ...values) => call(Document.prototype[name], document, ...values);

// The root's attributes that change while it is covered, as the file has them.
const HELD = ["style", "data-verdict"];
const written = HELD.map((name) => call(Element.prototype.getAttribute, its("documentElement"), name));

// A browser may write down what a style became only when it is asked: what was not asked for would be left after its removal.
const drop = (element, name) => {
  call(Element.prototype.getAttribute, element, name);
  call(Element.prototype.removeAttribute, element, name);
};

const cover = () => {
  const root = its("documentElement");
  drop(root, "data-verdict");
  try {
    // Neither a sheet nor a transition of the file's own comes before what the root itself says is important.
    const style = call(getter(HTMLElement.prototype, "style"), root);
    for (const [name, value] of [["transition", "none"], ["animation", "none"], ["display", "none"]]) {
      call(CSSStyleDeclaration.prototype.setProperty, style, name, value, "important");
    }
  } catch {
    // No page of ours: it has another root, and loses what is there.
    call(Element.prototype.replaceChildren, root);
  }
};

// A copy of the page as the file has it.
const asWritten = () => {
  const copy = call(Node.prototype.cloneNode, its("documentElement"), true);
  HELD.forEach((name, i) => {
    drop(copy, name);
    if (written[i] !== null) call(Element.prototype.setAttribute, copy, name, written[i]);
  });
  return copy;
};

const uncovered = () => drop(its("documentElement"), "style");

cover();
