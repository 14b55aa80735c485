// The granted client. This script's value is a factory: it is called once, before any guest code, with the private
// primitive and the grant's description. Everything it uses is captured here. The route check below is a convenience
// that saves a refused call from the budget: the host decides.
(() => {
  "use strict";
  const { parse, stringify } = JSON;
  const define = Object.defineProperty;
  const HostError = Error;
  const text = String;
  const apply = Reflect.apply;
  const { split, toUpperCase, charCodeAt } = String.prototype;
  const segments = (path) => apply(split, path, ["/"]);
  const upper = (method) => apply(toUpperCase, method, []);

  // RFC 3986 unreserved, and not only dots: what a `*` may face.
  const plain = (segment) => {
    let dots = 0;
    for (let i = 0; i < segment.length; i++) {
      const c = apply(charCodeAt, segment, [i]);
      const ok = (c >= 48 && c <= 57) || (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 45 || c === 95 || c === 126;
      if (c === 46) dots++;
      else if (!ok) return false;
    }
    return segment.length > dots;
  };
  const matches = (route, method, path) => {
    if (route.method !== method || route.path.length !== path.length) return false;
    for (let i = 0; i < path.length; i++) {
      if (route.path[i] === "*" ? !plain(path[i]) : route.path[i] !== path[i]) return false;
    }
    return true;
  };
  const read = (body) => {
    try {
      return parse(body);
    } catch {
      return body;
    }
  };
  const own = (object, name, value) =>
    define(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  return (primitive, description) => {
    const grant = parse(description);
    const routes = [];
    for (let i = 0; i < grant.allow.length; i++) {
      const line = apply(split, grant.allow[i], [" "]);
      own(routes, i, { method: upper(line[0]), path: segments(line[1]) });
    }
    const allowed = (method, path) => {
      const parts = segments(path);
      for (let i = 0; i < routes.length; i++) if (matches(routes[i], method, parts)) return true;
      return false;
    };
    // An async function rejects with the intrinsic Promise whatever became of the global one.
    const call = async (method, path, body) => {
      const verb = upper(text(method));
      const target = text(path);
      if (!allowed(verb, target)) {
        throw new HostError("host api call not permitted by sandbox capability: " + verb + " " + target);
      }
      const json = body === undefined ? undefined : stringify(body);
      const tail = json === undefined ? "}" : ',"body":' + json + "}";
      const answer = primitive('{"method":' + stringify(verb) + ',"path":' + stringify(target) + tail);
      if (answer.status >= 200 && answer.status <= 299) return read(answer.body);
      const error = new HostError("host api " + answer.status + ": " + answer.body);
      own(error, "status", answer.status);
      own(error, "body", read(answer.body));
      throw error;
    };
    const client = {
      call,
      get: (path) => call("GET", path),
      put: (path, body) => call("PUT", path, body),
      post: (path, body) => call("POST", path, body),
      patch: (path, body) => call("PATCH", path, body),
      del: (path) => call("DELETE", path),
    };
    define(globalThis, grant.global, { __proto__: null, value: client, writable: true, configurable: true });
  };
})();
