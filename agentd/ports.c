/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/str.h"

/*
 * /proc/net/tcp is read until the first socket that does not listen: a guest with a hundred thousand connections costs no
 * more. UDP has no such order; LIMIT_PORTS_READ bytes of it are looked at. Whose a socket is stands in the links of
 * /proc/PID/fd only; that search ends when all are found or LIMIT_SCAN_NS of work are over.
 */

#define TCP_LISTEN 0x0a
#define UDP_FREE   0x07 /* TCP_CLOSE: not connected */

#define LINE_MAX_LEN 256 /* the kernel's have 150 */

/* Cuts the next word off *AT, in place: up to one of ENDS or a space. NULL at the end. */
static char *cut(char **at, const char *ends)
{
	char *w = *at + strspn(*at, " "), *end = w + strcspn(w, ends);

	if (!*w || *w == '\n')
		return NULL;
	*at = end + (*end != '\0');
	*end = '\0';
	return w;
}

enum {
	SL,
	LOCAL,
	LOCAL_PORT,
	REMOTE,
	STATE,
	QUEUES,
	TIMER,
	RETRANSMITS,
	UID,
	WAIT,
	INODE,
	COLUMNS
};

bool ports_read_line(const char *line, bool udp, bool v6, struct port *ret, bool *ret_more)
{
	char copy[LINE_MAX_LEN], *at = copy, *f[COLUMNS];
	unsigned long port, state;
	const char *addr;
	uint64_t inode;

	*ret_more = true;
	if (str_format(copy, sizeof(copy), "%.*s", (int)sizeof(copy) - 1, line) < 0)
		return false;
	for (size_t i = 0; i < COLUMNS; i++) {
		f[i] = cut(&at, i == LOCAL ? ":" : " \n");
		if (!f[i])
			return false;
	}
	port = strtoul(f[LOCAL_PORT], NULL, 16);
	state = strtoul(f[STATE], NULL, 16);
	addr = f[LOCAL];
	if (port > UINT16_MAX || str_to_u64(f[INODE], 0, UINT64_MAX, &inode) < 0)
		return false;
	*ret_more = udp || state == TCP_LISTEN;
	if (state != (udp ? UDP_FREE : TCP_LISTEN) || strlen(addr) != (v6 ? 32 : 8) ||
	    strspn(addr, "0123456789ABCDEF") != strlen(addr))
		return false;
	*ret = (struct port){ .port = (uint16_t)port, .udp = udp, .v6 = v6, .inode = inode };
	for (size_t i = 0; i < strlen(addr) / 8; i++) {
		char word[9] = "";
		uint32_t w;

		memcpy(word, addr + 8 * i, 8);
		w = (uint32_t)strtoul(word, NULL, 16); /* printed as a number of the machine */
		memcpy(ret->addr + 4 * i, &w, 4);
	}
	return true;
}

static int compare(const struct port *x, const struct port *y)
{
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	if (x->udp != y->udp || x->v6 != y->v6)
		return 2 * (x->udp - y->udp) + (x->v6 - y->v6);
	return memcmp(x->addr, y->addr, sizeof(x->addr));
}

/* Keeps the list sorted; it is short. */
static void add(struct ports *p, const struct port *one)
{
	unsigned i = p->count;
	int c = 1;

	while (i > 0 && (c = compare(one, &p->list[i - 1])) < 0)
		i--;
	if (i > 0 && c == 0)
		return; /* SO_REUSEPORT: several sockets, one port */
	if (p->count == LIMIT_PORTS) {
		p->truncated = true;
		return;
	}
	memmove(&p->list[i + 1], &p->list[i], (p->count - i) * sizeof(*one));
	p->list[i] = *one;
	p->count++;
}

/* Takes the whole lines of TEXT. Returns where the rest begins; NULL when what follows does not matter. */
static const char *read_lines(struct ports *p, const char *text, bool udp, bool v6)
{
	const char *end;
	bool more = true;

	for (; more && (end = strchr(text, '\n')); text = end + 1) {
		struct port one;

		if (ports_read_line(text, udp, v6, &one, &more))
			add(p, &one);
	}
	return more ? text : NULL;
}

static void read_table(struct ports *p, const char *path, bool udp, bool v6)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC); /* -1: no IPv6, or no network at all */
	char text[4096];
	size_t len = 0, seen = 0;

	while (fd >= 0) {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
		const char *rest;

		if (n <= 0)
			return;
		len += (size_t)n;
		seen += (size_t)n;
		text[len] = '\0';
		rest = read_lines(p, text, udp, v6);
		if (!rest)
			return;
		len -= (size_t)(rest - text);
		memmove(text, rest, len);
		if (seen > LIMIT_PORTS_READ || len == sizeof(text) - 1) {
			p->truncated = true;
			return;
		}
	}
}

/* --- whose they are --- */
/* Time that agentd has worked: what a busy guest gives to others does not count. */
static int64_t cpu_ns(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * LIMIT_SECOND_NS + t.tv_nsec;
}

static void name_process(struct port *one, pid_t pid, int dir)
{
	AUTO_FD fd = openat(dir, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, one->process, sizeof(one->process) - 1);

	one->pid = pid;
	one->process[n > 0 ? n : 0] = '\0';
	one->process[strcspn(one->process, "\n")] = '\0';
}

/* How many ports are found to be PID's. */
static unsigned search_process(struct ports *p, pid_t pid, int dir, int64_t deadline)
{
	int fds = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fds < 0 ? NULL : fdopendir(fds);
	struct dirent *ent;
	unsigned found = 0;

	if (!d) {
		fd_close(&fds);
		return 0;
	}
	while ((ent = readdir(d)) && cpu_ns() < deadline) {
		char target[64];
		ssize_t n = readlinkat(fds, ent->d_name, target, sizeof(target) - 1);
		uint64_t inode;

		target[n > 0 ? n : 0] = '\0';
		if (!str_starts(target, "socket:["))
			continue;
		inode = strtoull(target + 8, NULL, 10);
		for (unsigned i = 0; i < p->count; i++)
			if (p->list[i].inode == inode && p->list[i].pid == 0) {
				name_process(&p->list[i], pid, dir);
				found++;
			}
	}
	(void)closedir(d);
	return found;
}

static void find_owners(struct ports *p)
{
	int64_t deadline = cpu_ns() + LIMIT_SCAN_NS;
	DIR *d = opendir("/proc");
	unsigned left = p->count;
	struct dirent *ent;

	while (d && left && (ent = readdir(d)) && cpu_ns() < deadline) {
		AUTO_FD dir = -1;
		uint64_t pid;

		if (str_to_u64(ent->d_name, 1, 1 << 22, &pid) < 0)
			continue;
		dir = openat(dirfd(d), ent->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0)
			left -= search_process(p, (pid_t)pid, dir, deadline);
	}
	if (d)
		(void)closedir(d);
	p->truncated = p->truncated || (left && cpu_ns() >= deadline);
}

void ports_collect(struct ports *p)
{
	p->count = 0;
	p->truncated = false;
	read_table(p, "/proc/net/tcp", false, false);
	read_table(p, "/proc/net/tcp6", false, true);
	read_table(p, "/proc/net/udp", true, false);
	read_table(p, "/proc/net/udp6", true, true);
	find_owners(p);
}
