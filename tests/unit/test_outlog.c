/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/outlog.c */
#include "../../agentd/outlog.h"

#include <stdbool.h>
#include <stdlib.h>

#include "../../agentd/limits.h"
#include "../lib/tap.h"

#define CAP (64UL << 10)

static void test_empty(void)
{
	struct outlog l;
	unsigned stream;
	const char *p;

	outlog_init(&l, CAP);
	ok_int(outlog_peek(&l, 0, &stream, &p), 0, "an empty log has nothing");
	ok_int(outlog_add(&l, 1, "", 0), 0, "nothing can be added");
	ok_int(outlog_room(&l, 0), CAP, "all of it is free");
	ok_int(l.size, 0, "and it has no memory yet");
	outlog_done(&l);
}

static void test_streams(void)
{
	struct outlog l;
	unsigned stream;
	const char *p;
	size_t n;

	outlog_init(&l, CAP);
	ok_int(outlog_add(&l, 1, "abc", 3) + outlog_add(&l, 1, "de", 2) +
		       outlog_add(&l, 2, "ERR", 3) + outlog_add(&l, 1, "f", 1),
	       0, "nothing is dropped");
	n = outlog_peek(&l, 0, &stream, &p);
	ok(n == 5 && stream == 1 && !memcmp(p, "abcde", 5), "bytes of one stream are one piece");
	n = outlog_peek(&l, 4, &stream, &p);
	ok(n == 1 && stream == 1 && *p == 'e', "an offset inside");
	n = outlog_peek(&l, 5, &stream, &p);
	ok(n == 3 && stream == 2 && !memcmp(p, "ERR", 3), "the other stream");
	n = outlog_peek(&l, 8, &stream, &p);
	ok(n == 1 && stream == 1 && *p == 'f', "and back");
	ok_int(outlog_peek(&l, 9, &stream, &p), 0, "the end");
	outlog_done(&l);
}

/* Random additions against a plain array that holds everything. */
static void test_model(size_t cap, size_t max_add, unsigned seed)
{
	static char bytes[4 << 20];
	static unsigned char streams[4 << 20];
	struct outlog l;
	uint64_t dropped = 0, end = 0;
	bool good = true;

	srand(seed);
	outlog_init(&l, cap);
	while (end + max_add < sizeof(bytes) && end < 100 * cap) {
		size_t n = 1 + (size_t)rand() % max_add;
		unsigned stream = 1 + (unsigned)rand() % 2;
		size_t room = outlog_room(&l, l.start);
		uint64_t lost;

		for (size_t i = 0; i < n; i++) {
			bytes[end + i] = (char)rand();
			streams[end + i] = (unsigned char)stream;
		}
		lost = outlog_add(&l, stream, bytes + end, n);
		good &= lost == 0 || n > room; /* what was said to fit did fit */
		dropped += lost;
		end += n;
		good &= l.end == end && l.start == dropped && l.end - l.start <= cap;
		for (uint64_t at = l.start; at < l.end;) {
			unsigned s;
			const char *p;
			size_t k = outlog_peek(&l, at, &s, &p);

			good &= k > 0 && !memcmp(p, bytes + at, k) && s == streams[at] &&
				s == streams[at + k - 1];
			if (k == 0)
				break;
			at += k;
		}
	}
	ok(good && dropped > 0,
	   "a log of %zu bytes with additions of up to %zu keeps its last bytes", cap, max_add);
	outlog_done(&l);
}

/* A command that changes its stream with every byte. */
static void test_runs(void)
{
	struct outlog l;
	uint64_t lost = 0;
	unsigned s;
	const char *p;
	size_t room;

	outlog_init(&l, CAP);
	for (int i = 0; i < LIMIT_LOG_RUNS; i++)
		lost += outlog_add(&l, 1 + (unsigned)i % 2, "x", 1);
	room = outlog_room(&l, 0);
	ok(lost == 0 && room == 0, "as many changes as are remembered: then there is no room");
	ok(outlog_room(&l, 5) > 0, "but for a reader that is further on");
	lost = outlog_add(&l, 1, "y", 1);
	ok(lost == 1 && l.start == 1 && outlog_peek(&l, 1, &s, &p) == 1 && s == 2,
	   "one more drops the oldest");
	outlog_done(&l);
}

static void test_budget(void)
{
	enum { LOGS = 80 };
	static struct outlog l[LOGS];
	static char block[LIMIT_READ];
	size_t total = 0;
	bool good = true;

	for (int i = 0; i < LOGS; i++)
		outlog_init(&l[i], LIMIT_LOG);
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < LOGS; i++) {
			size_t room = outlog_room(&l[i], l[i].start);
			uint64_t lost = outlog_add(&l[i], 1, block, sizeof(block));

			good &= lost == 0 || room < sizeof(block);
		}
	for (int i = 0; i < LOGS; i++)
		total += l[i].size;
	ok(total <= LIMIT_LOG_TOTAL && good, "80 logs that want 1 MiB each have %zu KiB together",
	   total >> 10);
	for (int i = 0; i < LOGS; i++)
		outlog_done(&l[i]);
	outlog_init(&l[0], LIMIT_LOG);
	ok_int(outlog_room(&l[0], 0), LIMIT_LOG, "and give it back");
	outlog_done(&l[0]);
}

int main(void)
{
	test_empty();
	test_streams();
	test_model(4096, 100, 1);
	test_model(4096, 9000, 2);
	test_model(16384, 3000, 3);
	test_runs();
	test_budget();
	return tap_done();
}
