/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/agent/frames.c */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "host/agent/frames.h"
#include "lib/buf.h"
#include "tap.h"

/* What came out, as text: "1:bytes", "2:bytes", "E:event", pieces of one stream joined. */
struct got {
	struct buf text;
	int last;
	int stop_after; /* data callbacks until one fails; 0 = never */
};

static int on_data(void *arg, int stream, const void *p, size_t n)
{
	struct got *g = arg;

	if (g->stop_after && --g->stop_after == 0)
		return -EPIPE;
	if (g->last != stream && buf_addf(&g->text, "|%d:", stream) < 0)
		return -ENOMEM;
	g->last = stream;
	return buf_add(&g->text, p, n);
}

static int on_event(void *arg, const char *json, size_t n)
{
	struct got *g = arg;

	g->last = 3;
	return buf_addf(&g->text, "|E:%.*s", (int)n, json);
}

static const struct frames_ops ops = { .data = on_data, .event = on_event };

static const char sample[] = "\1\0\0\0\0\0\0\3a\nb"
			     "\2\0\0\0\0\0\0\0"
			     "\2\0\0\0\0\0\0\1x"
			     "\1\0\0\0\0\0\0\2\0\xff"
			     "\3\0\0\0\0\0\0\6{\"a\":1"
			     "\3\0\0\0\0\0\0\0";
static const char want[] = "|1:a\nb|2:x|1:\0\xff|E:{\"a\":1|E:";

static int feed_split(size_t a, size_t b)
{
	struct got g = { .last = 0 };
	struct frames f;
	size_t n = sizeof(sample) - 1;
	int r, same;

	buf_init(&g.text, 4096);
	frames_init(&f, &ops, &g);
	r = frames_feed(&f, sample, a);
	if (r == 0)
		r = frames_feed(&f, sample + a, b - a);
	if (r == 0)
		r = frames_feed(&f, sample + b, n - b);
	same = g.text.len == sizeof(want) - 1 && memcmp(g.text.p, want, sizeof(want) - 1) == 0;
	frames_done(&f);
	buf_done(&g.text);
	return r == 0 && same;
}

static void test_splits(void)
{
	size_t n = sizeof(sample) - 1, bad = 0;

	for (size_t a = 0; a <= n; a++)
		for (size_t b = a; b <= n; b++)
			bad += !feed_split(a, b);
	ok_int(bad, 0, "every split of the sample into three gives the same");
}

static int feed_once(const char *p, size_t n, int stop_after)
{
	struct got g = { .last = 0, .stop_after = stop_after };
	struct frames f;
	int r;

	buf_init(&g.text, 4096);
	frames_init(&f, &ops, &g);
	r = frames_feed(&f, p, n);
	frames_done(&f);
	buf_done(&g.text);
	return r;
}

int main(void)
{
	static char big[8 + FRAMES_EVENT_MAX + 1];

	test_splits();
	ok_int(feed_once("\0\0\0\0\0\0\0\1x", 9, 0), -EPROTO, "stream 0 is refused");
	ok_int(feed_once("\4\0\0\0\0\0\0\1x", 9, 0), -EPROTO, "stream 4 is refused");
	ok_int(feed_once("\1\1\0\0\0\0\0\1x", 9, 0), -EPROTO, "a padding byte is refused");
	ok_int(feed_once("\1\0\0\0\377\377\377\377x", 9, 0), -EPROTO,
	       "4 GiB of data in one frame is refused");
	ok_int(feed_once("\3\0\0\0\0\1\0\1x", 9, 0), -EPROTO, "an event above 64 KiB is refused");
	memcpy(big, "\3\0\0\0\0\1\0\0", 8);
	memset(big + 8, 'x', FRAMES_EVENT_MAX);
	ok_int(feed_once(big, 8 + 100, 0), 0, "a large event that is not complete yet is fine");
	ok_int(feed_once("HTTP/1.1 200 OK\r\n", 17, 0), -EPROTO, "text is refused");
	ok_int(feed_once(sample, sizeof(sample) - 1, 2), -EPIPE,
	       "an error of a callback is handed back");
	ok_int(feed_once("", 0, 0), 0, "nothing is fine");
	return tap_done();
}
