/* The module's exports. The embedder takes a snapshot after `guest_preinit`; a run is then one fresh instance and
 * these calls, each at most once and in this order: guest_grant, guest_preamble (both only with a grant), guest_eval. */
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "shim.h"

#define EXPORT(name) __attribute__((export_name(#name)))

enum {
    STACK_CHECK = 256 * 1024, /* of the 1 MiB shadow stack: what is past it is for native recursion of the engine */
    REPORTED_REJECTIONS = 8,  /* unhandled rejections printed in full, the others counted */
};

static JSRuntime *runtime;
static JSContext *context;

/* Rejected promises nobody handles, newest first. A later handler takes its promise out again. */
struct rejection {
    JSValue promise, reason;
    struct rejection *next;
};
static struct rejection *rejections;

static void track_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool handled, void *opaque)
{
    (void)opaque;
    if (!handled) {
        struct rejection *entry = malloc(sizeof(*entry));
        if (!entry)
            abort();
        entry->promise = JS_DupValue(ctx, promise);
        entry->reason = JS_DupValue(ctx, reason);
        entry->next = rejections;
        rejections = entry;
        return;
    }
    for (struct rejection **at = &rejections; *at; at = &(*at)->next) {
        struct rejection *entry = *at;
        if (JS_VALUE_GET_PTR(entry->promise) == JS_VALUE_GET_PTR(promise)) {
            *at = entry->next;
            JS_FreeValue(ctx, entry->promise);
            JS_FreeValue(ctx, entry->reason);
            free(entry);
            return;
        }
    }
}

static void report(const char *title, JSValueConst value)
{
    out_text(STREAM_ERR, title);
    format_value(context, STREAM_ERR, value);
    out_text(STREAM_ERR, "\n");
    out_flush();
}

static int report_exception(void)
{
    JSValue exception = JS_GetException(context);
    report("Uncaught ", exception);
    JS_FreeValue(context, exception);
    return 1;
}

/* Oldest first, as they happened. */
static int report_rejections(void)
{
    struct rejection *oldest = NULL;
    uint32_t printed = 0, more = 0;
    while (rejections) {
        struct rejection *entry = rejections;
        rejections = entry->next;
        entry->next = oldest;
        oldest = entry;
    }
    for (struct rejection *entry = oldest; entry; entry = entry->next) {
        if (printed < REPORTED_REJECTIONS) {
            report("Uncaught (in promise) ", entry->reason);
            printed++;
        } else {
            more++;
        }
    }
    if (more > 0) {
        JSValue count = JS_NewUint32(context, more);
        report("Further unhandled rejections: ", count);
    }
    return printed > 0;
}

/* Runs a script with top-level await, then its jobs until none is left. 0 or 1, with the fault on standard error. */
static int run_script(const char *source, size_t len, const char *name)
{
    JSContext *job_context;
    int ran, failed;
    JSValue promise = JS_Eval(context, source, len, name, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC);
    if (JS_IsException(promise))
        return report_exception();
    while ((ran = JS_ExecutePendingJob(runtime, &job_context)) > 0)
        continue;
    if (ran < 0)
        return report_exception();
    switch (JS_PromiseState(context, promise)) {
    case JS_PROMISE_REJECTED: {
        JSValue reason = JS_PromiseResult(context, promise);
        report("Uncaught ", reason);
        JS_FreeValue(context, reason);
        return 1;
    }
    case JS_PROMISE_PENDING:
        failed = 1;
        out_text(STREAM_ERR, "top-level await never settled\n");
        break;
    default:
        failed = 0;
    }
    failed |= report_rejections();
    out_flush();
    JS_FreeValue(context, promise);
    return failed;
}

/* A run begins at whichever export is called first. */
static int begin_run(void)
{
    static bool begun;
    JS_UpdateStackTop(runtime);
    if (begun)
        return 0;
    begun = true;
    return fresh_begin(context) ? 0 : report_exception();
}

/* A buffer for text of `len` bytes, with room for the end mark the parser needs; 0 when there is no memory. */
EXPORT(guest_alloc) char *guest_alloc(size_t len)
{
    char *text = len < SIZE_MAX ? malloc(len + 1) : NULL;
    if (text)
        text[len] = '\0';
    return text;
}

/* Installs the granted client from its description, UTF-8 JSON: {"global": name, "allow": ["METHOD /path", ...]}. */
EXPORT(guest_grant) int guest_grant(const char *description, size_t len)
{
    if (begin_run())
        return 1;
    JSValue result = grant_install(context, description, len);
    return JS_IsException(result) ? report_exception() : 0;
}

/* Evaluates the grant's preamble, a script before the caller's, whose line numbers it leaves alone. */
EXPORT(guest_preamble) int guest_preamble(const char *source, size_t len)
{
    return begin_run() || run_script(source, len, "preamble.js");
}

EXPORT(guest_eval) int guest_eval(const char *source, size_t len)
{
    return begin_run() || run_script(source, len, "snippet.js");
}

/* Makes the context the snapshot holds. A failure traps: there is then no snapshot. */
EXPORT(guest_preinit) void guest_preinit(void)
{
    runtime = JS_NewRuntime();
    context = runtime ? JS_NewContext(runtime) : NULL;
    if (!context || JS_AddIntrinsicDOMException(context) < 0)
        abort();
    JS_SetMaxStackSize(runtime, STACK_CHECK);
    JS_SetHostPromiseRejectionTracker(runtime, track_rejection, NULL);

    if (!format_init(context) || !console_init(context) || !fresh_init(context))
        abort();
    JSValue numbers = JS_Eval(context, numbers_js, sizeof(numbers_js) - 1, "numbers.js", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(numbers))
        abort();
    JS_FreeValue(context, numbers);
    if (!grant_init(context, JS_Eval(context, client_js, sizeof(client_js) - 1, "client.js", JS_EVAL_TYPE_GLOBAL)))
        abort();
    JS_RunGC(runtime);
}
