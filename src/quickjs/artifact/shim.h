/* What the files of the shim share. The guest is one context that lives for one run, so its state is static. */
#ifndef PLIMSOLL_SHIM_H
#define PLIMSOLL_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quickjs.h"

enum stream { STREAM_OUT = 1, STREAM_ERR = 2 };

/* Writes bytes to a stream, buffered. An unpaired surrogate (three bytes starting with ED A0..BF) becomes U+FFFD. */
void out_bytes(enum stream to, const char *bytes, size_t len);
void out_text(enum stream to, const char *text);
/* Hands what is buffered to the host. Every console call ends with it, so that text survives a later trap. */
void out_flush(void);

/* Captures the intrinsics the formatter calls, before any guest code can replace them. False on failure. */
bool format_init(JSContext *ctx);
/* Prints one value of a console call. Runs no guest code: no getter, no proxy trap, no toString, no toJSON. */
void format_value(JSContext *ctx, enum stream to, JSValueConst value);

/* Installs `console` with its six methods. False on failure. */
bool console_init(JSContext *ctx);

/* Replaces `Math.random` by one that can be seeded later. False on failure. */
bool fresh_init(JSContext *ctx);
/* Seeds it from the host's random source and starts `performance`. Once a run, before any guest code. */
bool fresh_begin(JSContext *ctx);

/* Keeps the factory that makes the granted client. False on failure. */
bool grant_init(JSContext *ctx, JSValue factory);
/* Calls the factory with the private primitive and the grant's description. The result is undefined or an exception. */
JSValue grant_install(JSContext *ctx, const char *description, size_t len);

#endif
