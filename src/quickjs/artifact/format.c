/* Text of a value for the console. Guest code must not run while a value is printed: proxies are named and not
 * entered, accessors are named and not called, and every method used is an intrinsic captured before guest code. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shim.h"

enum {
    MAX_DEPTH = 2,          /* objects inside the printed object that are opened */
    MAX_ENTRIES = 100,      /* entries printed of each object */
    MAX_STRING = 1000,      /* bytes of a string inside an object */
    MAX_TOTAL = 256 * 1024, /* bytes of one printed object */
    MAX_CHAIN = 64,         /* prototypes followed for a name */
    MAX_CAUSES = 4,         /* causes followed below an error */
};

static struct {
    JSValue error_stack, date_iso, date_time, regexp_source, map_entries, map_next, set_values, set_next, map_size, set_size;
    JSValue regexp_flags[8];
} intrinsic;

static const struct { const char *name; char letter; } regexp_flags[8] = {
    { "hasIndices", 'd' }, { "global", 'g' }, { "ignoreCase", 'i' }, { "multiline", 'm' },
    { "dotAll", 's' }, { "unicode", 'u' }, { "unicodeSets", 'v' }, { "sticky", 'y' },
};

struct printer {
    JSContext *ctx;
    enum stream to;
    size_t left;
    JSValueConst above[MAX_DEPTH + MAX_CAUSES + 2];
    int above_len;
};

static void print_nested(struct printer *p, JSValueConst value, int depth);

static void put(struct printer *p, const char *bytes, size_t len)
{
    size_t now = len < p->left ? len : p->left;
    out_bytes(p->to, bytes, now);
    p->left -= now;
}

static void put_text(struct printer *p, const char *text)
{
    put(p, text, strlen(text));
}

/* An exception while printing (memory, stack) loses that piece of text, never the run. */
static void forget_exception(JSContext *ctx)
{
    JS_FreeValue(ctx, JS_GetException(ctx));
}

static void put_string(struct printer *p, JSValueConst text)
{
    size_t len;
    const char *bytes = JS_ToCStringLen(p->ctx, &len, text);
    if (!bytes) {
        forget_exception(p->ctx);
        return;
    }
    put(p, bytes, len);
    JS_FreeCString(p->ctx, bytes);
}

static void put_quoted(struct printer *p, const char *bytes, size_t len)
{
    size_t shown = len < MAX_STRING ? len : MAX_STRING;
    while (shown < len && shown > 0 && ((unsigned char)bytes[shown] & 0xc0) == 0x80)
        shown--;
    put(p, "\"", 1);
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)bytes[i];
        char escape[8];
        if (c == '"' || c == '\\') {
            escape[0] = '\\';
            escape[1] = (char)c;
            put(p, escape, 2);
        } else if (c == '\n') {
            put(p, "\\n", 2);
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(escape, sizeof(escape), "\\x%02x", c);
            put(p, escape, 4);
        } else {
            size_t run = i;
            while (i + 1 < shown && (unsigned char)bytes[i + 1] >= 0x20 && bytes[i + 1] != 0x7f && bytes[i + 1] != '"' &&
                   bytes[i + 1] != '\\')
                i++;
            put(p, bytes + run, i + 1 - run);
        }
    }
    put(p, "\"", 1);
    if (shown < len)
        put_text(p, "...");
}

/* The value of a data property, own or inherited; undefined for accessors and from a proxy on. */
static JSValue peek(JSContext *ctx, JSValueConst object, JSAtom name)
{
    JSValue at = JS_DupValue(ctx, object), found = JS_UNDEFINED;
    for (int i = 0; i < MAX_CHAIN && JS_IsObject(at) && !JS_IsProxy(at); i++) {
        JSPropertyDescriptor d;
        int has = JS_GetOwnProperty(ctx, &d, at, name);
        if (has < 0) {
            forget_exception(ctx);
            break;
        }
        if (has) {
            if (!(d.flags & JS_PROP_GETSET))
                found = JS_DupValue(ctx, d.value);
            JS_FreeValue(ctx, d.value);
            JS_FreeValue(ctx, d.getter);
            JS_FreeValue(ctx, d.setter);
            break;
        }
        JSValue up = JS_GetPrototype(ctx, at);
        JS_FreeValue(ctx, at);
        at = up;
    }
    JS_FreeValue(ctx, at);
    return found;
}

static JSValue peek_text(JSContext *ctx, JSValueConst object, const char *name)
{
    JSAtom atom = JS_NewAtom(ctx, name);
    JSValue found = peek(ctx, object, atom);
    JS_FreeAtom(ctx, atom);
    return found;
}

/* Calls a captured intrinsic; undefined when it throws. */
static JSValue ask(JSContext *ctx, JSValueConst function, JSValueConst self)
{
    JSValue answer = JS_Call(ctx, function, self, 0, NULL);
    if (JS_IsException(answer)) {
        forget_exception(ctx);
        return JS_UNDEFINED;
    }
    return answer;
}

static bool put_if_string(struct printer *p, JSValue text)
{
    bool is = JS_IsString(text);
    if (is)
        put_string(p, text);
    JS_FreeValue(p->ctx, text);
    return is;
}

static void put_class(struct printer *p, JSValueConst object)
{
    JSValue maker = peek_text(p->ctx, object, "constructor");
    bool named = JS_IsFunction(p->ctx, maker) && !JS_IsProxy(maker) && put_if_string(p, peek_text(p->ctx, maker, "name"));
    JS_FreeValue(p->ctx, maker);
    if (!named) {
        JSAtom name = JS_GetClassName(JS_GetRuntime(p->ctx), JS_GetClassID(object));
        const char *text = name == JS_ATOM_NULL ? NULL : JS_AtomToCString(p->ctx, name);
        put_text(p, text ? text : "Object");
        JS_FreeCString(p->ctx, text);
        JS_FreeAtom(p->ctx, name);
    }
}

static bool is_plain(JSContext *ctx, JSValueConst object)
{
    JSValue maker = peek_text(ctx, object, "constructor");
    JSValue name = JS_IsFunction(ctx, maker) ? peek_text(ctx, maker, "name") : JS_UNDEFINED;
    const char *text = JS_IsString(name) ? JS_ToCString(ctx, name) : NULL;
    bool plain = text && strcmp(text, "Object") == 0;
    JS_FreeCString(ctx, text);
    JS_FreeValue(ctx, name);
    JS_FreeValue(ctx, maker);
    return plain;
}

static void put_symbol(struct printer *p, JSValueConst symbol)
{
    JSAtom atom = JS_ValueToAtom(p->ctx, symbol);
    const char *text = JS_AtomToCString(p->ctx, atom);
    put_text(p, "Symbol(");
    put_text(p, text ? text : "");
    put_text(p, ")");
    JS_FreeCString(p->ctx, text);
    JS_FreeAtom(p->ctx, atom);
}

static void put_key(struct printer *p, JSAtom key)
{
    JSValue value = JS_AtomToValue(p->ctx, key);
    size_t len;
    if (JS_IsSymbol(value)) {
        put_text(p, "[");
        put_symbol(p, value);
        put_text(p, "]");
    } else {
        const char *bytes = JS_ToCStringLen(p->ctx, &len, value);
        /* Without quotes: names, and whole numbers. */
        bool name = bytes && len > 0 && !(bytes[0] >= '0' && bytes[0] <= '9'), digits = bytes && len > 0;
        for (size_t i = 0; (name || digits) && i < len; i++) {
            char c = bytes[i];
            bool digit = c >= '0' && c <= '9';
            digits = digits && digit;
            name = name && (digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$');
        }
        bool bare = name || digits;
        if (bytes && bare)
            put(p, bytes, len);
        else if (bytes)
            put_quoted(p, bytes, len);
        JS_FreeCString(p->ctx, bytes);
    }
    JS_FreeValue(p->ctx, value);
}

static void put_separator(struct printer *p, uint32_t *printed)
{
    put_text(p, *printed == 0 ? " " : ", ");
    ++*printed;
}

static void put_property(struct printer *p, JSPropertyDescriptor *d, int depth)
{
    if (d->flags & JS_PROP_GETSET) {
        bool get = JS_IsFunction(p->ctx, d->getter), set = JS_IsFunction(p->ctx, d->setter);
        put_text(p, get && set ? "[Getter/Setter]" : get ? "[Getter]" : "[Setter]");
    } else {
        print_nested(p, d->value, depth);
    }
    JS_FreeValue(p->ctx, d->value);
    JS_FreeValue(p->ctx, d->getter);
    JS_FreeValue(p->ctx, d->setter);
}

/* Own enumerable properties, `skip_indices` leaving out those an array has printed. */
static void put_properties(struct printer *p, JSValueConst object, int depth, bool skip_indices, uint32_t *printed)
{
    JSPropertyEnum *names = NULL;
    uint32_t count = 0;
    if (JS_GetOwnPropertyNames(p->ctx, &names, &count, object,
                               JS_GPN_STRING_MASK | JS_GPN_SYMBOL_MASK | JS_GPN_ENUM_ONLY) < 0) {
        forget_exception(p->ctx);
        return;
    }
    for (uint32_t i = 0; i < count && p->left > 0; i++) {
        JSPropertyDescriptor d;
        /* On this 32-bit build an atom with the top bit set is an array index. */
        if (skip_indices && (names[i].atom >> 31))
            continue;
        if (*printed >= MAX_ENTRIES) {
            char more[40];
            snprintf(more, sizeof(more), ", ... %u more", count - i);
            put_text(p, more);
            break;
        }
        int has = JS_GetOwnProperty(p->ctx, &d, object, names[i].atom);
        if (has <= 0) {
            if (has < 0)
                forget_exception(p->ctx);
            continue;
        }
        put_separator(p, printed);
        put_key(p, names[i].atom);
        put_text(p, ": ");
        put_property(p, &d, depth);
    }
    JS_FreePropertyEnum(p->ctx, names, count);
}

static void put_elements(struct printer *p, JSValueConst array, int64_t len, int depth, uint32_t *printed)
{
    int64_t holes = 0, i = 0;
    for (; i < len && *printed < MAX_ENTRIES && p->left > 0 && holes < 100000; i++) {
        JSPropertyDescriptor d;
        JSAtom index = JS_NewAtomUInt32(p->ctx, (uint32_t)i);
        int has = JS_GetOwnProperty(p->ctx, &d, array, index);
        JS_FreeAtom(p->ctx, index);
        if (has < 0)
            forget_exception(p->ctx);
        if (has <= 0) {
            holes++;
            continue;
        }
        if (holes > 0) {
            char text[40];
            put_separator(p, printed);
            snprintf(text, sizeof(text), "<%lld empty>", (long long)holes);
            put_text(p, text);
            holes = 0;
        }
        put_separator(p, printed);
        put_property(p, &d, depth);
    }
    if (holes > 0 || i < len) {
        char text[60];
        snprintf(text, sizeof(text), i < len ? "... %lld more" : "<%lld empty>", (long long)(len - i + holes));
        put_separator(p, printed);
        put_text(p, text);
    }
}

static void put_collection(struct printer *p, JSValueConst object, bool map, int depth, uint32_t *printed)
{
    JSContext *ctx = p->ctx;
    JSValue iterator = ask(ctx, map ? intrinsic.map_entries : intrinsic.set_values, object);
    JSAtom done_name = JS_NewAtom(ctx, "done"), value_name = JS_NewAtom(ctx, "value");
    while (JS_IsObject(iterator) && p->left > 0) {
        JSValue step = ask(ctx, map ? intrinsic.map_next : intrinsic.set_next, iterator);
        JSValue done = peek(ctx, step, done_name);
        bool end = !JS_IsBool(done) || JS_VALUE_GET_BOOL(done);
        JSValue value = end ? JS_UNDEFINED : peek(ctx, step, value_name);
        JS_FreeValue(ctx, step);
        if (!end && *printed >= MAX_ENTRIES) {
            put_text(p, ", ...");
            end = true;
        } else if (!end) {
            put_separator(p, printed);
            if (map) {
                JSValue key = peek_text(ctx, value, "0"), item = peek_text(ctx, value, "1");
                print_nested(p, key, depth);
                put_text(p, " => ");
                print_nested(p, item, depth);
                JS_FreeValue(ctx, key);
                JS_FreeValue(ctx, item);
            } else {
                print_nested(p, value, depth);
            }
        }
        JS_FreeValue(ctx, value);
        if (end)
            break;
    }
    JS_FreeAtom(ctx, done_name);
    JS_FreeAtom(ctx, value_name);
    JS_FreeValue(ctx, iterator);
}

static void put_regexp(struct printer *p, JSValueConst regexp)
{
    put_text(p, "/");
    put_if_string(p, ask(p->ctx, intrinsic.regexp_source, regexp));
    put_text(p, "/");
    for (int i = 0; i < 8; i++) {
        JSValue set = ask(p->ctx, intrinsic.regexp_flags[i], regexp);
        if (JS_IsBool(set) && JS_VALUE_GET_BOOL(set))
            put(p, &regexp_flags[i].letter, 1);
        JS_FreeValue(p->ctx, set);
    }
}

static void put_function(struct printer *p, JSValueConst function)
{
    JSValue name = peek_text(p->ctx, function, "name");
    size_t len = 0;
    const char *text = JS_IsString(name) ? JS_ToCStringLen(p->ctx, &len, name) : NULL;
    put_text(p, "[Function");
    if (len > 0) {
        put_text(p, ": ");
        put(p, text, len < MAX_STRING ? len : MAX_STRING);
    } else {
        put_text(p, " (anonymous)");
    }
    put_text(p, "]");
    JS_FreeCString(p->ctx, text);
    JS_FreeValue(p->ctx, name);
}

static void put_error_title(struct printer *p, JSValueConst error)
{
    JSValue name = peek_text(p->ctx, error, "name"), message = peek_text(p->ctx, error, "message");
    const char *text = JS_IsString(message) ? JS_ToCString(p->ctx, message) : NULL;
    if (JS_IsString(name))
        put_string(p, name);
    else
        put_text(p, "Error");
    if (text && text[0] != '\0') {
        put_text(p, ": ");
        put_string(p, message);
    }
    JS_FreeCString(p->ctx, text);
    JS_FreeValue(p->ctx, name);
    JS_FreeValue(p->ctx, message);
}

/* Title, stack, own properties (a granted call's status and body), then the cause and the errors it gathers. */
static void put_error(struct printer *p, JSValueConst error, int causes)
{
    JSContext *ctx = p->ctx;
    uint32_t printed = 0;
    put_error_title(p, error);
    JSValue stack = peek_text(ctx, error, "stack");
    if (!JS_IsString(stack)) {
        JS_FreeValue(ctx, stack);
        stack = ask(ctx, intrinsic.error_stack, error);
    }
    size_t len = 0;
    const char *lines = JS_IsString(stack) ? JS_ToCStringLen(ctx, &len, stack) : NULL;
    while (len > 0 && lines[len - 1] == '\n')
        len--;
    if (len > 0) {
        put_text(p, "\n");
        put(p, lines, len);
    }
    JS_FreeCString(ctx, lines);
    JS_FreeValue(ctx, stack);

    JSPropertyEnum *names = NULL;
    uint32_t count = 0;
    if (JS_GetOwnPropertyNames(ctx, &names, &count, error, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY) < 0) {
        forget_exception(ctx);
        count = 0;
    }
    JS_FreePropertyEnum(ctx, names, count);
    if (count > 0) {
        put_text(p, "\n  {");
        put_properties(p, error, 1, false, &printed);
        put_text(p, " }");
    }

    JSValue cause = peek_text(ctx, error, "cause"), errors = peek_text(ctx, error, "errors");
    if (!JS_IsUndefined(cause) && causes > 0) {
        put_text(p, "\n  [cause]: ");
        if (JS_IsError(cause))
            put_error(p, cause, causes - 1);
        else
            print_nested(p, cause, 1);
    }
    if (JS_IsArray(errors)) {
        put_text(p, "\n  [errors]: ");
        print_nested(p, errors, 1);
    }
    JS_FreeValue(ctx, cause);
    JS_FreeValue(ctx, errors);
}

static void put_promise(struct printer *p, JSValueConst promise, int depth)
{
    JSPromiseStateEnum state = JS_PromiseState(p->ctx, promise);
    put_text(p, "Promise { ");
    if (state == JS_PROMISE_PENDING) {
        put_text(p, "<pending>");
    } else {
        JSValue result = JS_PromiseResult(p->ctx, promise);
        if (state == JS_PROMISE_REJECTED)
            put_text(p, "<rejected> ");
        print_nested(p, result, depth);
        JS_FreeValue(p->ctx, result);
    }
    put_text(p, " }");
}

static void put_counted_class(struct printer *p, JSValueConst object, long long size)
{
    char text[32];
    put_class(p, object);
    snprintf(text, sizeof(text), "(%lld) ", size);
    put_text(p, text);
}

static int64_t collection_size(struct printer *p, JSValueConst object, bool map)
{
    JSValue answer = ask(p->ctx, map ? intrinsic.map_size : intrinsic.set_size, object);
    int64_t size = 0;
    if (JS_IsNumber(answer))
        JS_ToInt64(p->ctx, &size, answer);
    JS_FreeValue(p->ctx, answer);
    return size;
}

static void put_container(struct printer *p, JSValueConst object, int depth)
{
    JSContext *ctx = p->ctx;
    uint32_t printed = 0;
    bool map = JS_IsMap(object), list = false, indexed = false;
    if (JS_IsArray(object) || JS_GetTypedArrayType(object) >= 0) {
        int64_t len = 0;
        size_t bytes = 0, size = 1;
        if (JS_IsArray(object)) {
            JS_GetLength(ctx, object, &len);
        } else {
            JSValue buffer = JS_GetTypedArrayBuffer(ctx, object, NULL, &bytes, &size);
            if (JS_IsException(buffer))
                forget_exception(ctx);
            JS_FreeValue(ctx, buffer);
            len = (int64_t)(size ? bytes / size : 0);
            put_counted_class(p, object, len);
        }
        list = indexed = true;
        put_text(p, "[");
        put_elements(p, object, len, depth + 1, &printed);
        if (len > 10000 || printed > MAX_ENTRIES) {
            put_text(p, " ]");
            return;
        }
    } else if (map || JS_IsSet(object)) {
        put_counted_class(p, object, collection_size(p, object, map));
        put_text(p, "{");
        put_collection(p, object, map, depth + 1, &printed);
    } else {
        JSValue up = JS_GetPrototype(ctx, object);
        if (JS_IsNull(up)) {
            put_text(p, "[Object: null prototype] ");
        } else if (!is_plain(ctx, object)) {
            put_class(p, object);
            put_text(p, " ");
        }
        JS_FreeValue(ctx, up);
        put_text(p, "{");
    }
    put_properties(p, object, depth + 1, indexed, &printed);
    put_text(p, printed == 0 ? "" : " ");
    put_text(p, list ? "]" : "}");
}

static void put_object(struct printer *p, JSValueConst object, int depth)
{
    JSContext *ctx = p->ctx;
    if (JS_IsProxy(object)) {
        put_text(p, "[Proxy]");
    } else if (JS_IsFunction(ctx, object)) {
        put_function(p, object);
    } else if (JS_IsError(object)) {
        put_text(p, "[");
        put_error_title(p, object);
        put_text(p, "]");
    } else if (JS_IsDate(object)) {
        /* Asked first: toISOString would throw, and an error being made calls a guest's Error.prepareStackTrace. */
        double time = NAN;
        JSValue number = ask(ctx, intrinsic.date_time, object);
        if (JS_IsNumber(number))
            JS_ToFloat64(ctx, &time, number);
        JS_FreeValue(ctx, number);
        if (isnan(time) || !put_if_string(p, ask(ctx, intrinsic.date_iso, object)))
            put_text(p, "Invalid Date");
    } else if (JS_IsRegExp(object)) {
        put_regexp(p, object);
    } else if (JS_IsPromise(object) && depth <= MAX_DEPTH) {
        put_promise(p, object, depth + 1);
    } else if (depth > MAX_DEPTH) {
        put_text(p, "[");
        put_class(p, object);
        put_text(p, "]");
    } else {
        for (int i = 0; i < p->above_len; i++) {
            if (JS_VALUE_GET_PTR(p->above[i]) == JS_VALUE_GET_PTR(object)) {
                put_text(p, "[Circular]");
                return;
            }
        }
        p->above[p->above_len++] = object;
        put_container(p, object, depth);
        p->above_len--;
    }
}

static void print_nested(struct printer *p, JSValueConst value, int depth)
{
    if (p->left == 0)
        return;
    if (JS_IsObject(value)) {
        put_object(p, value, depth);
    } else if (JS_IsString(value)) {
        size_t len;
        const char *bytes = JS_ToCStringLen(p->ctx, &len, value);
        if (bytes)
            put_quoted(p, bytes, len);
        else
            forget_exception(p->ctx);
        JS_FreeCString(p->ctx, bytes);
    } else if (JS_IsSymbol(value)) {
        put_symbol(p, value);
    } else {
        put_string(p, value);
        if (JS_IsBigInt(value))
            put_text(p, "n");
    }
}

void format_value(JSContext *ctx, enum stream to, JSValueConst value)
{
    struct printer p = { .ctx = ctx, .to = to, .left = JS_IsObject(value) ? MAX_TOTAL : SIZE_MAX };
    if (JS_IsError(value))
        put_error(&p, value, MAX_CAUSES);
    else if (JS_IsSymbol(value))
        put_symbol(&p, value);
    else if (JS_IsObject(value))
        put_object(&p, value, 0);
    else
        put_string(&p, value);
    if (p.left == 0)
        out_text(to, "...");
}

/* The method `name` of the prototype of the global `maker`, or the getter of that name. */
static JSValue method_of(JSContext *ctx, const char *maker, const char *name)
{
    JSValue global = JS_GetGlobalObject(ctx), object = JS_GetPropertyStr(ctx, global, maker);
    JSValue proto = JS_GetPropertyStr(ctx, object, "prototype"), found = JS_UNDEFINED;
    JSAtom atom = JS_NewAtom(ctx, name);
    JSPropertyDescriptor d;
    if (JS_GetOwnProperty(ctx, &d, proto, atom) > 0)
        found = d.flags & JS_PROP_GETSET ? d.getter : d.value;
    JS_FreeAtom(ctx, atom);
    JS_FreeValue(ctx, proto);
    JS_FreeValue(ctx, object);
    JS_FreeValue(ctx, global);
    return found;
}

/* The `next` of the iterators that an empty `maker` gives. */
static JSValue next_of(JSContext *ctx, const char *maker, JSValueConst start)
{
    JSValue global = JS_GetGlobalObject(ctx), constructor = JS_GetPropertyStr(ctx, global, maker);
    JSValue empty = JS_CallConstructor(ctx, constructor, 0, NULL);
    JSValue iterator = JS_Call(ctx, start, empty, 0, NULL), next = JS_GetPropertyStr(ctx, iterator, "next");
    JS_FreeValue(ctx, iterator);
    JS_FreeValue(ctx, empty);
    JS_FreeValue(ctx, constructor);
    JS_FreeValue(ctx, global);
    return next;
}

bool format_init(JSContext *ctx)
{
    intrinsic.error_stack = method_of(ctx, "Error", "stack");
    intrinsic.date_iso = method_of(ctx, "Date", "toISOString");
    intrinsic.date_time = method_of(ctx, "Date", "getTime");
    intrinsic.regexp_source = method_of(ctx, "RegExp", "source");
    intrinsic.map_entries = method_of(ctx, "Map", "entries");
    intrinsic.set_values = method_of(ctx, "Set", "values");
    intrinsic.map_size = method_of(ctx, "Map", "size");
    intrinsic.set_size = method_of(ctx, "Set", "size");
    intrinsic.map_next = next_of(ctx, "Map", intrinsic.map_entries);
    intrinsic.set_next = next_of(ctx, "Set", intrinsic.set_values);
    bool ok = JS_IsFunction(ctx, intrinsic.error_stack) && JS_IsFunction(ctx, intrinsic.date_iso) &&
              JS_IsFunction(ctx, intrinsic.date_time) &&
              JS_IsFunction(ctx, intrinsic.regexp_source) && JS_IsFunction(ctx, intrinsic.map_size) &&
              JS_IsFunction(ctx, intrinsic.set_size) && JS_IsFunction(ctx, intrinsic.map_next) &&
              JS_IsFunction(ctx, intrinsic.set_next);
    for (int i = 0; i < 8; i++) {
        intrinsic.regexp_flags[i] = method_of(ctx, "RegExp", regexp_flags[i].name);
        ok = ok && JS_IsFunction(ctx, intrinsic.regexp_flags[i]);
    }
    return ok;
}
