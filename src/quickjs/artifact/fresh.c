/* What every run must have anew although it starts from a snapshot: the random numbers and the origin of the clock.
 * The engine's own Math.random is seeded, and its performance.now is started, when the context is made. */
#include <time.h>
#include <unistd.h>

#include "shim.h"

static uint64_t state[4];
static int64_t origin;

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec now = { 0 };
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

/* xoshiro256++ */
static uint64_t draw(void)
{
    uint64_t result = rotate(state[0] + state[3], 23) + state[0], t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate(state[3], 45);
    return result;
}

static JSValue math_random(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    (void)this_val, (void)argc, (void)argv;
    return JS_NewFloat64(ctx, (double)(draw() >> 11) * 0x1p-53);
}

/* Subtracted as integers: the host's clock is whole milliseconds, and so is the answer. */
static JSValue performance_now(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    (void)this_val, (void)argc, (void)argv;
    return JS_NewFloat64(ctx, (double)(nanoseconds(CLOCK_MONOTONIC) - origin) / 1e6);
}

bool fresh_init(JSContext *ctx)
{
    JSValue global = JS_GetGlobalObject(ctx), math = JS_GetPropertyStr(ctx, global, "Math");
    JSValue random = JS_NewCFunction(ctx, math_random, "random", 0);
    bool ok = JS_IsObject(math) && JS_DefinePropertyValueStr(ctx, math, "random", random,
                                                             JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE) >= 0;
    JS_FreeValue(ctx, math);
    JS_FreeValue(ctx, global);
    return ok;
}

bool fresh_begin(JSContext *ctx)
{
    if (getentropy(state, sizeof(state)) != 0)
        return false;
    origin = nanoseconds(CLOCK_MONOTONIC);
    JSValue global = JS_GetGlobalObject(ctx), performance = JS_NewObject(ctx);
    JSValue now = JS_NewCFunction(ctx, performance_now, "now", 0);
    JSValue start = JS_NewInt64(ctx, nanoseconds(CLOCK_REALTIME) / 1000000);
    bool ok = JS_DefinePropertyValueStr(ctx, performance, "now", now, JS_PROP_C_W_E) >= 0 &&
              JS_DefinePropertyValueStr(ctx, performance, "timeOrigin", start, JS_PROP_ENUMERABLE) >= 0 &&
              JS_DefinePropertyValueStr(ctx, global, "performance", performance,
                                        JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE) >= 0;
    JS_FreeValue(ctx, global);
    return ok;
}
