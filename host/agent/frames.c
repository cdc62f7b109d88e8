/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/frames.h"

#include <errno.h>
#include <string.h>

void frames_init(struct frames *f, const struct frames_ops *ops, void *arg)
{
	*f = (struct frames){ .ops = ops, .arg = arg };
	buf_init(&f->event, FRAMES_EVENT_MAX);
}

void frames_done(struct frames *f)
{
	buf_done(&f->event);
}

static int begin(struct frames *f)
{
	const unsigned char *h = f->head;
	uint32_t len = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];

	if (h[1] || h[2] || h[3])
		return -EPROTO;
	if (h[0] == PROTO_STREAM_STDOUT || h[0] == PROTO_STREAM_STDERR) {
		if (len > FRAMES_DATA_MAX)
			return -EPROTO;
	} else if (h[0] != PROTO_STREAM_EVENT || len > FRAMES_EVENT_MAX) {
		return -EPROTO;
	}
	buf_clear(&f->event);
	f->left = len;
	return 0;
}

static int payload(struct frames *f, const void *p, size_t n)
{
	if (f->head[0] != PROTO_STREAM_EVENT)
		return n ? f->ops->data(f->arg, f->head[0], p, n) : 0;
	return buf_add(&f->event, p, n);
}

/* The payload is complete: tells an event, and waits for the next header. */
static int end(struct frames *f)
{
	f->have = 0;
	return f->head[0] == PROTO_STREAM_EVENT
		       ? f->ops->event(f->arg, f->event.p ? f->event.p : "", f->event.len)
		       : 0;
}

int frames_feed(struct frames *f, const void *p, size_t n)
{
	const char *c = p;
	int r = 0;

	while (n && r == 0) {
		size_t k;

		if (f->have < sizeof(f->head)) {
			k = sizeof(f->head) - f->have < n ? sizeof(f->head) - f->have : n;
			memcpy(f->head + f->have, c, k);
			f->have += k;
			if (f->have == sizeof(f->head))
				r = begin(f);
		} else {
			k = f->left < n ? f->left : n;
			r = payload(f, c, k);
			f->left -= (uint32_t)k;
		}
		if (r == 0 && f->have == sizeof(f->head) && f->left == 0)
			r = end(f);
		c += k;
		n -= k;
	}
	return r;
}
