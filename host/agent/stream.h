/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_STREAM_H
#define ASB_AGENT_STREAM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * One request to the agent whose body is written, or whose answer is read, like a file: each call blocks, and runs the loop
 * of HTTP meanwhile. For what makes or takes a long stream by itself (lib/pack.h, lib/unpack.h). Nothing is
 * sent again when the connection is cut.
 */
struct backend;
struct stream;

struct stream_spec { /* all borrowed */
	const struct backend *backend;
	const char *id; /* of the sandbox */
	const char *method;
	const char *path; /* with its query, encoded */
	bool upload;
	const volatile sig_atomic_t
		*cancel; /* set by a signal handler: calls then return -EINTR; NULL = never */
	/* Called whenever a call waits, at least every STREAM_TURN_MS; NULL = not wanted. */
	void (*turn)(void *arg);
	void *turn_arg;
};
#define STREAM_TURN_MS	 200 /* so that a signal that came just before a wait is seen soon */
#define STREAM_BUFFER	 (1U << 20)
#define STREAM_SILENT_NS (90LL * 1000000000) /* without a byte in either direction: -ETIMEDOUT */

int stream_open(const struct stream_spec *s, struct stream **ret, struct err *e) MUST_CHECK;
void stream_free(struct stream *s); /* cuts the connection when it is not over; NULL is fine */

/* Takes all N bytes. 0, or a negative errno; -EPIPE when the agent has answered already, see stream_end. */
int stream_write(struct stream *s, const void *p, size_t n) MUST_CHECK;
/* For a caller that waits until FD can be read: lets the stream go on until then, or for a moment. As stream_write. */
int stream_turn(struct stream *s, int fd) MUST_CHECK;
/* Of a 200 answer: > 0, 0 at its end (which came whole), or a negative errno; -EPROTO for another status, see
 * stream_end. */
ssize_t stream_read(struct stream *s, void *p, size_t n) MUST_CHECK;

/* It is over, and not by a whole answer of 200. */
bool stream_failed(const struct stream *s);

/*
 * Ends the body that was written, waits for the end of the answer. 0 for a 200 with *RET_JSON (may be NULL; owned; NULL for a download), else a negative
 * errno with what the agent, or the connection, says. Also tells why a call before it failed.
 */
int stream_end(struct stream *s, cJSON **ret_json, struct err *e) MUST_CHECK;

#endif
