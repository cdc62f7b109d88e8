/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_FRAMES_H
#define ASB_AGENT_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/proto.h"

/*
 * Decoder of GET /v1/execs/{id}/output: Docker's multiplexed stream (Docker Engine API, "Attach to
 * a container"). Fed any split of the bytes. Payload of streams 1 and 2 is handed on as it comes
 * and never kept; events are collected, with a cap. The peer is a guest and not trusted: whatever
 * is no frame of ours ends the decoding.
 */
#define FRAMES_EVENT_MAX (64U << 10)
#define FRAMES_DATA_MAX	 (64U << 20)

struct frames_ops {
	/* STREAM: PROTO_STREAM_STDOUT or _STDERR. Non-zero stops and is returned by frames_feed. */
	int (*data)(void *arg, int stream, const void *p, size_t n);
	int (*event)(void *arg, const char *json, size_t n); /* one whole event, NUL-terminated */
};

struct frames {
	const struct frames_ops *ops; /* borrowed */
	void *arg;
	unsigned char head[PROTO_FRAME_HEADER];
	size_t have;	  /* bytes of head */
	uint32_t left;	  /* payload bytes still to come, while have is whole */
	struct buf event; /* owned */
};

void frames_init(struct frames *f, const struct frames_ops *ops, void *arg);
void frames_done(struct frames *f);

/* 0, -EPROTO for a byte that cannot be, -ENOMEM, or what a callback returned. After a failure F is
 * only good for _done. */
int frames_feed(struct frames *f, const void *p, size_t n) MUST_CHECK;

#endif
