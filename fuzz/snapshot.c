/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/snapmeta.c host/local/snapfile.c host/local/digest.c host/local/qcow2.c host/local/vmfile.c
 * host/state/?*.c host/backend.c */
/*
 * The file of a snapshot from somebody hostile: its manifest, then its parts into a folder. The first byte: what is
 * taken, and whether the rest is a manifest alone. What is accepted must print to what is accepted again, and only names
 * of parts appear.
 */
#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "host/backend.h"
#include "host/local/snapfile.h"
#include "lib/fd.h"
#include "lib/str.h"

const struct backend backend_local = { .name = "local" };

#define HOME "build/fuzz/snapshot.d"

struct stream {
	const uint8_t *p;
	size_t n;
};

static ssize_t read_stream(void *arg, void *p, size_t n)
{
	struct stream *s = arg;

	n = n < s->n ? n : s->n;
	n = n < 700 ? n : 700; /* so that it comes in pieces */
	if (n)
		memcpy(p, s->p, n);
	s->p += n;
	s->n -= n;
	return (ssize_t)n;
}

static void manifest(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	struct snap_meta m, again;
	AUTO_BUF b;

	buf_init(&b, 4 * SNAP_META_MAX);
	if (snap_meta_parse(s, n, &m, NULL) == 0) {
		if (snap_meta_print(&m, true, &b) < 0)
			abort();
		if (b.len <= SNAP_META_MAX) {
			if (snap_meta_parse(b.p, b.len, &again, NULL) < 0)
				abort();
			snap_meta_done(&again);
		}
		snap_meta_done(&m);
	}
	free(s);
}

static void check_and_empty(int dir)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int i = 0;

		if (e->d_name[0] == '.')
			continue;
		while (i < SNAP_PARTS && strcmp(snap_part_names[i], e->d_name) != 0)
			i++;
		if (i == SNAP_PARTS || unlinkat(dir, e->d_name, 0) < 0)
			abort();
	}
	(void)closedir(d);
}

static void whole(const uint8_t *p, size_t n, bool disk_only)
{
	struct stream s = { p, n };
	struct err e = ERR_INIT;
	struct snap_in *in;
	struct snap_meta m;
	int dir;

	if (snapfile_open(read_stream, &s, &in, &m, &e) < 0) {
		if (!e.msg[0])
			abort();
		return;
	}
	dir = open(HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m.config.memory_mib <= 64 && m.part[SNAP_DISK].bytes <= 1 << 20)
		ignore_result(snapfile_take(in, &m, dir, disk_only, NULL, &e));
	check_and_empty(dir);
	(void)close(dir);
	snap_meta_done(&m);
	snapfile_close(in);
}

static bool start(void)
{
	if (!fuzz_confine("build/fuzz"))
		return false;
	(void)mkdir(HOME, 0755);
	if (mount("none", HOME, "tmpfs", 0, "size=64m") < 0)
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const bool usable = fuzz_started(start);

	if (n < 1)
		return 0;
	if (p[0] & 1)
		manifest(p + 1, n - 1);
	else if (usable)
		whole(p + 1, n - 1, p[0] & 2);
	return 0;
}
