/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/hostname.h"
#include "lib/log.h"
#include "lib/str.h"
#include "portrange.h"
#include "seed.h"

#define MACHINE_ID   "/etc/machine-id"
#define CLOCK_OFF_NS (10 * 1000000LL)
#define NS_PER_S     1000000000LL

struct fresh {
	unsigned char kernel[64], generation[16], machine[16];
	uint32_t ports;
};

static int note(int first, int r, const char *what)
{
	if (r < 0)
		log_warn("%s: %s", what, strerror(-r));
	return first ? first : r;
}

static int give_kernel(const struct fresh *f)
{
	bool reseeded = false;
	int r = seed_kernel(f->kernel, sizeof(f->kernel), &reseeded);

	if (r == 0 && !reseeded)
		log_info("fed the kernel's generator, but not reseeded: no CAP_SYS_ADMIN");
	return r;
}

static int write_id(const char *path, const char *id)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (slash && slash != path &&
	    str_format(dir, sizeof(dir), "%.*s", (int)(slash - path), path) == 0)
		ignore_result(fd_mkdirs(dir, 0755)); /* if it fails, so does the next */
	return fd_replace_file_lazy(path, id, strlen(id), 0644);
}

/* machine-id(5): a random UUID of version 4, as 32 digits and a newline. */
static int write_machine_id(const struct fresh *f)
{
	unsigned char id[16];
	char s[34];

	memcpy(id, f->machine, sizeof(id));
	id[6] = (unsigned char)((id[6] & 0x0f) | 0x40);
	id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
	str_hex(id, sizeof(id), s);
	s[32] = '\n';
	return fd_rewrite_file(MACHINE_ID, s, 33, 0444);
}

static int set_clock(int64_t want_ns)
{
	struct timespec t;
	int64_t now;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	now = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
	if (llabs(now - want_ns) <= CLOCK_OFF_NS)
		return 0;
	t = (struct timespec){ .tv_sec = (time_t)(want_ns / NS_PER_S),
			       .tv_nsec = (long)(want_ns % NS_PER_S) };
	return clock_settime(CLOCK_REALTIME, &t) < 0 ? -errno : 0;
}

int identity_prepare(void)
{
	static const char none[] = "00000000000000000000000000000000\n"; /* which no machine has */
	char name[HOSTNAME_LEN_MAX + 2] = "";
	struct stat st;
	int r;

	if (stat(MACHINE_ID, &st) < 0 || st.st_size > 0)
		return 0;
	r = fd_replace_file_lazy(MACHINE_ID, none, sizeof(none) - 1, 0444);
	if (gethostname(name, sizeof(name) - 1) < 0 || !hostname_valid(name))
		(void)snprintf(name, sizeof(name), "sandbox");
	return note(r, hostname_apply(name, false), "host name");
}

int identity_renew(const char *path, bool machine, const struct payload *p, char ret_generation[33])
{
	struct fresh f;
	int r = 0;

	seed_draw(p->entropy, p->entropy_len, &f, sizeof(f));
	r = note(r, give_kernel(&f), "kernel's generator");
	str_hex(f.generation, sizeof(f.generation), ret_generation);
	r = note(r, write_id(path, ret_generation), path);
	if (machine && p->time_ns)
		r = note(r, set_clock(p->time_ns), "clock");
	if (machine)
		r = note(r, write_machine_id(&f), "/etc/machine-id");
	if (machine)
		r = note(r, portrange_renew(f.ports), "range of local ports");
	if (p->hostname)
		r = note(r, hostname_apply(p->hostname, true), "host name");
	memset(&f, 0, sizeof(f));
	return r;
}
