/* Guest output and console. One buffer serves both streams: what it holds is flushed when the stream changes. */
#include <string.h>
#include <wasi/api.h>

#include "shim.h"

static char pending[8192];
static size_t pending_len;
static enum stream pending_to = STREAM_OUT;

void out_flush(void)
{
    size_t done = 0;
    while (done < pending_len) {
        __wasi_ciovec_t vec = { (const uint8_t *)pending + done, pending_len - done };
        __wasi_size_t wrote = 0;
        if (__wasi_fd_write(pending_to, &vec, 1, &wrote) != 0 || wrote == 0)
            break;
        done += wrote;
    }
    pending_len = 0;
}

static void put(enum stream to, const char *bytes, size_t len)
{
    if (to != pending_to) {
        out_flush();
        pending_to = to;
    }
    while (len > 0) {
        size_t room = sizeof(pending) - pending_len;
        size_t now = len < room ? len : room;
        memcpy(pending + pending_len, bytes, now);
        pending_len += now;
        bytes += now;
        len -= now;
        if (pending_len == sizeof(pending))
            out_flush();
    }
}

void out_bytes(enum stream to, const char *bytes, size_t len)
{
    size_t start = 0;
    for (size_t i = 0; i + 2 < len; i++) {
        if ((unsigned char)bytes[i] == 0xed && (unsigned char)bytes[i + 1] >= 0xa0) {
            put(to, bytes + start, i - start);
            put(to, "\xef\xbf\xbd", 3);
            i += 2;
            start = i + 1;
        }
    }
    put(to, bytes + start, len - start);
}

void out_text(enum stream to, const char *text)
{
    out_bytes(to, text, strlen(text));
}

static JSValue console_print(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv, int magic)
{
    (void)this_val;
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            out_bytes(magic, " ", 1);
        format_value(ctx, magic, argv[i]);
    }
    out_bytes(magic, "\n", 1);
    out_flush();
    return JS_UNDEFINED;
}

bool console_init(JSContext *ctx)
{
    static const struct { const char *name; enum stream to; } methods[] = {
        { "log", STREAM_OUT }, { "info", STREAM_OUT }, { "debug", STREAM_OUT },
        { "error", STREAM_ERR }, { "warn", STREAM_ERR }, { "trace", STREAM_ERR },
    };
    JSValue global = JS_GetGlobalObject(ctx);
    JSValue console = JS_NewObject(ctx);
    bool ok = !JS_IsException(console);
    for (size_t i = 0; ok && i < sizeof(methods) / sizeof(methods[0]); i++) {
        JSValue method = JS_NewCFunctionMagic(ctx, console_print, methods[i].name, 0, JS_CFUNC_generic_magic,
                                              methods[i].to);
        ok = JS_SetPropertyStr(ctx, console, methods[i].name, method) >= 0;
    }
    if (ok)
        ok = JS_DefinePropertyValueStr(ctx, global, "console", console, JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE) >= 0;
    JS_FreeValue(ctx, global);
    return ok;
}
