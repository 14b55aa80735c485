/* The granted client's way out. The primitive is handed to the client's factory and is never a global, so that no
 * guest code can reach it, granted or not; every rule is the host's all the same. */
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* The longest response body, and so the size of the buffer the host writes to. */
enum { RESPONSE_CAP = 4 * 1024 * 1024 };

__attribute__((import_module("plimsoll"), import_name("host_call"))) extern uint64_t
host_call(const char *request, size_t request_len, char *response, size_t response_cap);

static JSValue client_factory;

static JSValue primitive(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    (void)this_val;
    if (argc < 1 || !JS_IsString(argv[0]))
        return JS_ThrowTypeError(ctx, "host call takes one string");
    size_t len;
    const char *request = JS_ToCStringLen(ctx, &len, argv[0]);
    if (!request)
        return JS_EXCEPTION;
    char *response = malloc(RESPONSE_CAP);
    if (!response) {
        JS_FreeCString(ctx, request);
        return JS_ThrowOutOfMemory(ctx);
    }
    uint64_t result = host_call(request, len, response, RESPONSE_CAP);
    JS_FreeCString(ctx, request);
    uint32_t status = (uint32_t)(result >> 32), body_len = (uint32_t)result;
    if (status < 100 || status > 599 || body_len > RESPONSE_CAP) {
        free(response);
        return JS_ThrowInternalError(ctx, "host call answered outside its contract");
    }
    JSValue answer = JS_NewObject(ctx), body = JS_NewStringLen(ctx, response, body_len);
    free(response);
    if (JS_IsException(answer) || JS_IsException(body) ||
        JS_DefinePropertyValueStr(ctx, answer, "status", JS_NewInt32(ctx, (int32_t)status), JS_PROP_C_W_E) < 0 ||
        JS_DefinePropertyValueStr(ctx, answer, "body", body, JS_PROP_C_W_E) < 0) {
        JS_FreeValue(ctx, answer);
        return JS_EXCEPTION;
    }
    return answer;
}

bool grant_init(JSContext *ctx, JSValue factory)
{
    client_factory = factory;
    return JS_IsFunction(ctx, factory);
}

JSValue grant_install(JSContext *ctx, const char *description, size_t len)
{
    JSValue args[2] = {
        JS_NewCFunction(ctx, primitive, "__plimsoll_host_call", 1),
        JS_NewStringLen(ctx, description, len),
    };
    JSValue result = JS_Call(ctx, client_factory, JS_UNDEFINED, 2, (JSValueConst *)args);
    JS_FreeValue(ctx, args[0]);
    JS_FreeValue(ctx, args[1]);
    return result;
}
