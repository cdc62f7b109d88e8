/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/caplog.c host/cli/since.c */
#include "host/local/caplog.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/since.h"
#include "lib/fd.h"
#include "tap.h"

/* The lines of NAME: each must begin with a time. Returns how many, and the rest of the last in
 * LAST. */
static int read_lines(int dir, const char *name, char *last, size_t size)
{
	AUTO_BUF b;
	int n = 0;

	buf_init(&b, 1 << 20);
	if (fd_read_file(dir, name, &b) < 0)
		return -1;
	for (char *p = b.p; p && *p; n++) {
		char *nl = strchr(p, '\n');
		int64_t when;
		unsigned stamp;

		if (nl)
			*nl = '\0';
		stamp = since_stamp(p, strlen(p), &when);
		if (!stamp)
			return -2;
		if (strlen(p + stamp) < size)
			memcpy(last, p + stamp, strlen(p + stamp) + 1);
		if (!nl)
			return n + 1;
		p = nl + 1;
	}
	return n;
}

int main(void)
{
	char path[] = "/tmp/asb-caplog-XXXXXX", last[256] = "";
	struct caplog l = CAPLOG_INIT;
	int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY) : -1;

	ok(dir >= 0 && caplog_open(&l, dir, "log", 8192) == 0, "a log");
	caplog_lines(&l, "one\ntw", 6);
	caplog_lines(&l, "o\n\nthr", 6);
	caplog_lines(&l, "ee", 2);
	ok_int(read_lines(dir, "log", last, sizeof(last)), 4, "lines that came split");
	ok_str(last, "three", "the last one is whole");
	caplog_lines(&l, "\r", 1);
	caplog_lines(&l, "\n10%\r20%\r\r\n", 11);
	ok_int(read_lines(dir, "log", last, sizeof(last)), 5,
	       "ends of lines as a terminal has them");
	ok_str(last, "10%\r20%\r", "one CR goes with its LF, others stay");
	for (int i = 0; i < 1000; i++)
		caplog_lines(&l, "\n\n\n\n\n\n\n\nx\n", 10);
	ok(read_lines(dir, "log", last, sizeof(last)) > 10,
	   "a flood of short lines is cut at lines");
	ok_str(last, "x", "and its end is there");
	ok(l.size <= 8192, "the cap holds: %lld", (long long)l.size);
	caplog_close(&l);
	close(dir);
	ok(fd_remove_tree(path) == 0, "removed");
	return tap_done();
}
