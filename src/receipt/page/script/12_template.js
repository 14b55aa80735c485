// The page's template language, as in `page/template.rs`: {{name}} shown, {{~name}} shown without mark-up, {{{name}}} as
// it is, {{#name}}…{{/name}} for each item or when there is something, {{^name}}…{{/name}} when there is nothing.

const render = (template, view) => {
  const find = (scopes, name) => {
    for (let i = scopes.length - 1; i >= 0; i -= 1) {
      if (Object.hasOwn(scopes[i], name)) return scopes[i][name];
    }
    throw new Error(`the template asks for ${name}`);
  };
  const tag = /\{\{\{([a-z0-9_]+)\}\}\}|\{\{([#^\/~]?)([a-z0-9_]+)\}\}/g;
  const body = (start, scopes, closing) => {
    let out = "";
    let at = start;
    for (;;) {
      tag.lastIndex = at;
      const found = tag.exec(template);
      if (!found) {
        if (closing) throw new Error(`the template does not close ${closing}`);
        return [out + template.slice(at), template.length];
      }
      if (scopes) out += template.slice(at, found.index);
      at = tag.lastIndex;
      const [, raw, sigil, name] = found;
      if (sigil === "/") {
        if (name !== closing) throw new Error(`the template closes ${name}`);
        return [out, at];
      }
      if (sigil === "#" || sigil === "^") {
        const value = scopes && find(scopes, name);
        const items = Array.isArray(value) ? value : value ? [value] : [];
        const wanted = sigil === "#" ? items : items.length ? [] : [{}];
        let end = body(at, null, name)[1];
        for (const item of scopes ? wanted : []) {
          const [inner, after] = body(at, item instanceof Object ? [...scopes, item] : scopes, name);
          out += inner;
          end = after;
        }
        at = end;
      } else if (scopes) {
        const value = String(find(scopes, raw || name));
        out += raw ? value : sigil === "~" ? shownPlain(value) : shown(value);
      }
    }
  };
  return body(0, [view], null)[0];
};
