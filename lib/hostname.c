/* SPDX-License-Identifier: Apache-2.0 */
#include "hostname.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "str.h"

#define FILE_MAX (64UL << 10)
#define ADDRESS	 "127.0.1.1"

bool hostname_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > HOSTNAME_LEN_MAX || name[0] == '-' || name[n - 1] == '-')
		return false;
	for (; *name; name++) {
		char c = *name;

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-'))
			return false;
	}
	return true;
}

static bool is_ours(const char *line)
{
	size_t n = strlen(ADDRESS);

	return str_starts(line, ADDRESS) && (line[n] == ' ' || line[n] == '\t');
}

int hostname_edit_hosts(const char *text, const char *name, struct buf *out)
{
	bool done = false;
	int r = 0;

	if (!*text)
		r = buf_adds(out,
			     "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
	while (r == 0 && *text) {
		size_t n = strcspn(text, "\n");

		if (is_ours(text) && !done) {
			r = buf_addf(out, ADDRESS "\t%s\n", name);
			done = true;
		} else {
			r = buf_addf(out, "%.*s\n", (int)n, text);
		}
		text += n + (text[n] == '\n');
	}
	if (r == 0 && !done)
		r = buf_addf(out, ADDRESS "\t%s\n", name);
	return r;
}

static int update(const char *path, const struct buf *old, const char *p, size_t n, bool in_place)
{
	int r;

	if (old->p && old->len == n && !memcmp(old->p, p, n))
		return 0;
	/* two fsync(2) would cost more than the rest of a boot */
	r = in_place ? fd_rewrite_file(path, p, n, 0644) : fd_replace_file_lazy(path, p, n, 0644);
	if (r == -EBUSY) { /* a container's own mount: it cannot be replaced, only written */
		AUTO_FD fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		r = fd < 0 ? -errno : fd_write_all(fd, p, n);
	}
	return r;
}

static int apply_file(const char *path, const char *name, bool hosts, bool in_place)
{
	AUTO_BUF old, new;
	int r;

	buf_init(&old, FILE_MAX);
	buf_init(&new, FILE_MAX + 512);
	r = fd_read_file(AT_FDCWD, path, &old);
	if (r < 0 && r != -ENOENT)
		return r;
	r = hosts ? hostname_edit_hosts(old.p ? old.p : "", name, &new)
		  : buf_addf(&new, "%s\n", name);
	return r < 0 ? r : update(path, &old, new.p, new.len, in_place);
}

int hostname_apply(const char *name, bool in_place)
{
	int first = 0, r;

	if (!hostname_valid(name))
		return -EINVAL;
	if (sethostname(name, strlen(name)) < 0)
		first = -errno;
	r = apply_file("/etc/hostname", name, false, in_place);
	if (first == 0)
		first = r;
	r = apply_file("/etc/hosts", name, true, in_place);
	return first ? first : r;
}
