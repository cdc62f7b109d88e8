/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/vmfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/pretty.h"
#include "lib/str.h"

#define FILE_MAX (VM_ENV_MAX * 2 + 65536)

bool vmdir_is_id(const char *id)
{
	return str_starts(id, "local-") && strlen(id) == 22 &&
	       strspn(id + 6, "0123456789abcdef") == 16;
}

int vmdir_new_id(char ret[SANDBOX_ID_MAX + 1], struct err *e)
{
	unsigned char raw[8];
	char hex[2 * sizeof(raw) + 1];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	str_hex(raw, sizeof(raw), hex);
	return str_format(ret, SANDBOX_ID_MAX + 1, "local-%s", hex);
}

void vm_config_done(struct vm_config *c)
{
	cJSON_Delete(c->env);
	c->env = NULL;
}

/* The names of modes are those of the command line. */
static const char *net_name(enum net_mode m)
{
	return m == NET_USER ? "user" : "none";
}

/* NAME is replaced in one step. DURABLE: on the disk before it returns. */
static int replace(int dirfd, const char *name, const cJSON *j, bool durable)
{
	AUTO_BUF b;
	AUTO_FD fd = -1;
	char tmp[64];
	int r = str_format(tmp, sizeof(tmp), ".%s.new", name);

	buf_init(&b, FILE_MAX);
	if (r == 0)
		r = pretty_json(j, &b);
	if (r < 0)
		return r;
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, b.p, b.len);
	if (r == 0 && durable && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0);
	return r;
}

cJSON *vm_config_json(const struct vm_config *c)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *env = c->env ? cJSON_Duplicate(c->env, true) : NULL, *ret = j;

	if (!j || (c->env && (!env || !cJSON_AddItemToObject(j, "env", env)))) {
		cJSON_Delete(env);
		return NULL;
	}
	if (!jsn_add_str(j, "id", c->id) || !jsn_add_str(j, "name", c->name) ||
	    !jsn_add_str(j, "image", c->image) || !jsn_add_u64(j, "cpus", c->cpus) ||
	    !jsn_add_u64(j, "memory_mib", c->memory_mib) ||
	    !jsn_add_str(j, "net", net_name(c->net)) ||
	    !jsn_add_bool(j, "ephemeral", c->ephemeral) ||
	    !jsn_add_bool(j, "template", c->template) ||
	    !jsn_add_u64(j, "idle_timeout_ms", c->idle_timeout_ms) ||
	    !jsn_add_u64(j, "max_duration_ms", c->max_duration_ms) ||
	    (c->build && !jsn_add_bool(j, "build", true)) ||
	    !jsn_add_i64(j, "created", c->created_s))
		return NULL;
	j = NULL;
	return ret;
}

int vmfile_write_config(int dirfd, const struct vm_config *c)
{
	AUTO_JSN *j = vm_config_json(c);

	return j ? replace(dirfd, "vm.json", j, true) : -ENOMEM;
}

static int read_json(int dirfd, const char *name, cJSON **ret, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, FILE_MAX);
	r = fd_read_file(dirfd, name, &b);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "%s of the sandbox", name);
	*ret = jsn_parse(b.p ? b.p : "", b.len, e);
	if (*ret)
		return 0;
	(void)err_wrap(e, "%s of the sandbox", name);
	return -EINVAL;
}

static int take_text(const cJSON *j, const char *name, char *out, size_t size, struct err *e)
{
	const char *s = NULL;
	int r = jsn_str(j, name, &s, e);

	if (r == 1 && str_format(out, size, "%s", s) == 0)
		return 0;
	return r < 0 ? r : err_set(e, ERR_INVALID, EINVAL, "\"%s\" of vm.json", name);
}

int vm_config_parse(const cJSON *j, struct vm_config *ret, struct err *e)
{
	struct vm_config c = { .net = NET_NONE };
	const char *net = "none";
	const cJSON *env = NULL;
	uint64_t cpus = 1, created = 0;
	int r = take_text(j, "id", c.id, sizeof(c.id), e);

	if (r == 0)
		r = take_text(j, "name", c.name, sizeof(c.name), e);
	if (r == 0)
		r = take_text(j, "image", c.image, sizeof(c.image), e);
	if (r < 0)
		return r;
	if (jsn_u64(j, "cpus", 1, 1024, &cpus, e) < 0 ||
	    jsn_u64(j, "memory_mib", 1, 1U << 30, &c.memory_mib, e) < 0 ||
	    jsn_u64(j, "created", 0, INT64_MAX / 2, &created, e) < 0 ||
	    jsn_str(j, "net", &net, e) < 0 || jsn_bool(j, "ephemeral", &c.ephemeral, e) < 0 ||
	    jsn_bool(j, "template", &c.template, e) < 0 || jsn_bool(j, "build", &c.build, e) < 0 ||
	    jsn_u64(j, "idle_timeout_ms", 0, VM_TIME_MAX_MS, &c.idle_timeout_ms, e) < 0 ||
	    jsn_u64(j, "max_duration_ms", 0, VM_TIME_MAX_MS, &c.max_duration_ms, e) < 0 ||
	    jsn_object(j, "env", &env, e) < 0)
		return -EINVAL;
	c.cpus = (uint32_t)cpus;
	c.created_s = (int64_t)created;
	c.net = strcmp(net, net_name(NET_USER)) == 0 ? NET_USER : NET_NONE;
	c.env = env ? cJSON_Duplicate(env, true) : NULL;
	if (env && !c.env)
		return err_set(e, ERR_INTERNAL, ENOMEM, "vm.json");
	*ret = c;
	return 0;
}

int vmdir_read_config(int dirfd, struct vm_config *ret, struct err *e)
{
	AUTO_JSN *j = NULL;
	int r = read_json(dirfd, "vm.json", &j, e);

	return r < 0 ? r : vm_config_parse(j, ret, e);
}

void vmdir_read_status(int dirfd, struct vm_status *ret)
{
	AUTO_JSN *j = NULL;
	const char *state = "", *accel = "", *reason = "";
	uint64_t started = 0;

	*ret = (struct vm_status){ .state = SANDBOX_PENDING };
	if (read_json(dirfd, "status.json", &j, NULL) < 0)
		return;
	if (jsn_str(j, "state", &state, NULL) < 0 || jsn_str(j, "accel", &accel, NULL) < 0 ||
	    jsn_str(j, "reason", &reason, NULL) < 0 ||
	    jsn_u64(j, "started_ms", 0, INT64_MAX / 2, &started, NULL) < 0)
		return;
	ret->started_ms = (int64_t)started;
	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		if (!strcmp(state, sandbox_state_name((enum sandbox_state)i)))
			ret->state = (enum sandbox_state)i;
	if (str_format(ret->accel, sizeof(ret->accel), "%s", accel) < 0)
		ret->accel[0] = '\0';
	if (str_format(ret->reason, sizeof(ret->reason), "%s", reason) < 0)
		ret->reason[0] = '\0';
}

int vmdir_write_status(int dirfd, const struct vm_status *s)
{
	AUTO_JSN *j = cJSON_CreateObject();

	if (!j || !jsn_add_str(j, "state", sandbox_state_name(s->state)) ||
	    !jsn_add_str(j, "accel", s->accel) || !jsn_add_i64(j, "started_ms", s->started_ms) ||
	    !jsn_add_text(j, "reason", s->reason, strlen(s->reason)))
		return -ENOMEM;
	return replace(dirfd, "status.json", j, false);
}

/* Data only: a sparse image stays sparse. */
static int copy_extents(int in, int out, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t from = lseek(in, at, SEEK_DATA), to, back;

		if (from < 0)
			return errno == ENXIO ? 0 : -errno;
		to = lseek(in, from, SEEK_HOLE);
		if (to < 0)
			return -errno;
		for (at = back = from; at < to;) {
			ssize_t n = copy_file_range(in, &at, out, &back, (size_t)(to - at), 0);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
		}
	}
	return 0;
}

/* For file systems between which copy_file_range(2) does not go (EXDEV before Linux 5.19,
 * EOPNOTSUPP). */
static int copy_bytes(int in, int out, off_t size)
{
	static char p[1 << 16];
	off_t at = 0;

	while (at < size) {
		ssize_t n = pread(in, p, sizeof(p), at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = fd_pwrite_all(out, p, (size_t)n, at);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

int vmfile_copy(const char *from, int dirfd, const char *name)
{
	AUTO_FD in = open(from, O_RDONLY | O_CLOEXEC);
	AUTO_FD out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	out = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	r = ftruncate(out, st.st_size) < 0 ? -errno : copy_extents(in, out, st.st_size);
	if (r == -EXDEV || r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL)
		r = copy_bytes(in, out, st.st_size);
	return r;
}
