/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/local/accel.h"
#include "host/local/client.h"
#include "host/local/qemubin.h"
#include "host/local/share.h"
#include "host/local/spawn.h"
#include "host/local/template.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * The owner's side of a VM: from `create` until `keep` or `drop`. The owner is whoever holds the
 * other end of the supervisor's owner socket; if we die the kernel closes it and the supervisor
 * cleans up. If the supervisor dies, we clean up.
 */

#define LINE_CAP     4096
#define DROP_NS	     15000000000LL
#define MEMORY_LEAST 64 /* MiB: less does not hold the kernel and its initramfs */
#define CPUS_MOST    64
#define LOCK_NS	     10000000000LL
#define KEEP_NS	     60000000000LL /* what it has written is brought to the disk */
#define LATE_NS	     2000000000LL  /* the supervisor's own deadline comes first and says more */

struct backend_owner {
	int fd;	   /* owner socket */
	int dirfd; /* the VM's folder */
	char id[SANDBOX_ID_MAX + 1];
};

static int check_spec(const struct sandbox_spec *s, struct err *e)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t have = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size >> 20 : 0;

	if (!s->build && str_starts(s->image, SHARE_BLOB)) {
		(void)err_set(e, ERR_INVALID, 0, "'%.100s' is not the name of a local image",
			      s->image);
		return -EINVAL;
	}
	if (s->cpus < 1 || s->cpus > CPUS_MOST) {
		(void)err_set(e, ERR_INVALID, 0, "a local sandbox has 1 to %d CPUs, not %u",
			      CPUS_MOST, s->cpus);
		return -EINVAL;
	}
	if (s->memory_mib < MEMORY_LEAST) {
		(void)err_set(
			e, ERR_INVALID, 0,
			"%llu MiB of memory is too little for a local sandbox: at least %d MiB",
			(unsigned long long)s->memory_mib, MEMORY_LEAST);
		return -EINVAL;
	}
	if (have && s->memory_mib > have) {
		(void)err_set(e, ERR_INVALID, 0,
			      "%llu MiB of memory is more than this machine has (%llu MiB)",
			      (unsigned long long)s->memory_mib, (unsigned long long)have);
		return -EINVAL;
	}
	return 0;
}

/* "K=V" strings as an object; the last of a name counts. */
static int make_env(char *const *env, cJSON **ret, struct err *e)
{
	AUTO_JSN *j = cJSON_CreateObject();
	size_t bytes = 0;

	for (; j && env && *env; env++) {
		const char *eq = strchr(*env, '=');
		char name[1024];

		if (!eq || eq == *env ||
		    str_format(name, sizeof(name), "%.*s", (int)(eq - *env), *env) < 0) {
			(void)err_set(e, ERR_INVALID, 0, "'%.80s' is not a variable (NAME=VALUE)",
				      *env);
			return -EINVAL;
		}
		bytes += strlen(*env) + 8;
		if (bytes > VM_ENV_MAX / 4) /* quoted twice on its way to the guest */
			return err_set(e, ERR_TOO_BIG, E2BIG,
				       "the variables of the sandbox (at most %lu bytes)",
				       (unsigned long)VM_ENV_MAX / 4);
		cJSON_DeleteItemFromObjectCaseSensitive(j, name);
		if (!jsn_add_str(j, name, eq + 1))
			return err_set(e, ERR_INTERNAL, ENOMEM, "the variables");
	}
	if (!j)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the variables");
	*ret = cJSON_GetArraySize(j) ? j : NULL;
	if (*ret)
		j = NULL;
	return 0;
}

/* IMAGE: with its version, so that the sandbox keeps it. */
static int make_config(const struct sandbox_spec *s, const char *id, const char *image,
		       struct vm_config *ret, struct err *e)
{
	struct vm_config c = { .cpus = s->cpus,
			       .memory_mib = s->memory_mib,
			       .net = s->net,
			       .ephemeral = s->ephemeral,
			       .template = !s->cold,
			       .idle_timeout_ms = (uint64_t)s->idle_timeout_ns / 1000000,
			       .max_duration_ms = (uint64_t)s->max_duration_ns / 1000000,
			       .build = s->build,
			       .created_s = time(NULL) };
	int r = make_env(s->env, &c.env, e);

	if (r < 0)
		return r;
	r = str_format(c.id, sizeof(c.id), "%s", id);
	if (r == 0)
		r = str_format(c.name, sizeof(c.name), "%s", s->name);
	if (r == 0)
		r = str_format(c.image, sizeof(c.image), "%s", image);
	if (r < 0) {
		vm_config_done(&c);
		return err_set(e, ERR_INVALID, -r, "the name of the sandbox or of its image");
	}
	*ret = c;
	return 0;
}

/* --- waiting for the supervisor --- */
/* One line of the supervisor: 1 ready, 0 go on, or its failure. */
static int take_line(const char *line, size_t n, const struct progress *p, struct err *e)
{
	AUTO_JSN *j = jsn_parse(line, n, NULL);
	const char *stage = NULL, *failed = NULL, *code = "";
	uint64_t ms = 0;
	bool ready = false;

	if (!j || jsn_str(j, "stage", &stage, NULL) < 0 ||
	    jsn_str(j, "failed", &failed, NULL) < 0 || jsn_str(j, "code", &code, NULL) < 0 ||
	    jsn_bool(j, "ready", &ready, NULL) < 0 ||
	    jsn_u64(j, "ms", 0, INT64_MAX / 2, &ms, NULL) < 0)
		return err_set(e, ERR_INTERNAL, EPROTO, "the sandbox's supervisor");
	if (failed) {
		(void)err_set(e, client_err_code(code), 0, "%s", failed);
		return -EIO;
	}
	if (p && p->fn && (stage || ready))
		p->fn(p->arg, ready ? "ready" : stage, (int64_t)ms);
	return ready;
}

static int wait_ready(struct backend_owner *o, const struct progress *p, int64_t deadline_ns,
		      struct err *e)
{
	AUTO_BUF b;
	int r = 0;

	buf_init(&b, LINE_CAP);
	while (r == 0) {
		r = client_read_line(o->fd, &b, deadline_ns + LATE_NS, p ? p->cancel : NULL);
		if (r == -EINTR)
			return err_set(e, ERR_UNAVAILABLE, EINTR, "starting the sandbox");
		if (r == -ETIMEDOUT)
			return err_set(e, ERR_TIMEOUT, ETIMEDOUT, "the sandbox's supervisor");
		if (r < 0) {
			(void)err_set(e, ERR_UNAVAILABLE, 0, "the sandbox's supervisor was killed");
			return -ENOTCONN;
		}
		r = take_line(b.p ? b.p : "", b.len, p, e);
	}
	return r < 0 ? r : 0;
}

static void owner_free(struct backend_owner *o)
{
	fd_close(&o->fd);
	fd_close(&o->dirfd);
	free(o);
}

/* Starts a supervisor of the VM and waits. On failure there is no supervisor any more. LOCK is
 * consumed. */
static int launch(const char *id, bool start, int lock, const struct progress *p,
		  int64_t deadline_ns, struct backend_owner **ret, struct err *e)
{
	char folder[LOCAL_PATH_MAX];
	struct backend_owner *o = calloc(1, sizeof(*o));
	struct spawn_args a = { .folder = folder,
				.start = start,
				.lock_fd = lock,
				.limit_ns = deadline_ns - loop_now() };
	int r = o ? vmdir_path(id, folder, e) : err_set(e, ERR_INTERNAL, ENOMEM, "the sandbox");

	if (o)
		o->fd = o->dirfd = -1;
	if (r == 0)
		r = str_format(o->id, sizeof(o->id), "%s", id);
	if (r == 0)
		r = vmdir_open(id, &o->dirfd, e);
	if (r == 0)
		r = spawn_supervisor(&a, e);
	fd_close(&lock);
	if (r == 0) {
		o->fd = a.owner_fd;
		r = wait_ready(o, p, deadline_ns, e);
		if (r < 0) { /* closing the socket ends it */
			fd_close(&o->fd);
			ignore_result(client_wait_unlocked(o->dirfd, loop_now() + DROP_NS));
		}
	}
	if (r < 0) {
		if (o)
			owner_free(o);
		return r;
	}
	*ret = o;
	return 0;
}

/* The key of the template to start from, if there is one; "": this sandbox boots. */
static void find_template(const char *qemu, const struct share *share, const struct vm_config *c,
			  char ret[TEMPLATE_KEY_LEN + 1])
{
	enum accel accel = accel_choose(qemu, share->kernel);

	ret[0] = '\0';
	if (c->template && accel != ACCEL_KVM_UNPROVEN &&
	    template_key(qemu, share, c, accel == ACCEL_KVM, ret, NULL) < 0)
		ret[0] = '\0';
}

/* What every start begins with: S and QEMU, also a path, are what there is on this machine; C what is asked for. */
static int prepare(const struct sandbox_spec *spec, const char *id, struct share *s, char *qemu,
		   struct vm_config *c, struct err *e)
{
	int r = check_spec(spec, e);

	if (r == 0)
		r = share_find(spec->image, s, e);
	if (r == 0)
		r = qemubin_find(qemu, e); /* tells what is missing before anything is made */
	return r < 0 ? r : make_config(spec, id, s->image, c, e);
}

int start_template_key(const struct sandbox_spec *spec, char ret[TEMPLATE_KEY_LEN + 1],
		       struct err *e)
{
	static struct share share; /* too big for the stack */
	static char qemu[LOCAL_PATH_MAX];
	struct vm_config c = { 0 };
	int r = prepare(spec, "", &share, qemu, &c, e);

	if (r < 0)
		return r;
	r = template_key(qemu, &share, &c, accel_choose(qemu, share.kernel) != ACCEL_TCG, ret, e);
	vm_config_done(&c);
	return r;
}

int start_create(const struct sandbox_spec *spec, const char *id, const struct progress *p,
		 int64_t deadline_ns, struct backend_owner **ret, struct err *e)
{
	static struct share share; /* too big for the stack */
	static char qemu[LOCAL_PATH_MAX];
	char key[TEMPLATE_KEY_LEN + 1];
	struct vm_config c = { 0 };
	int lock, r = prepare(spec, id, &share, qemu, &c, e);

	if (r < 0) {
		vmdir_made();
		return r;
	}
	find_template(qemu, &share, &c, key);
	r = vmdir_create(&c, &(struct vm_source){ .disk = share.upper, .key = key[0] ? key : NULL },
			 &lock, e);
	vmdir_made();
	vm_config_done(&c);
	if (r < 0)
		return r;
	r = launch(id, false, lock, p, deadline_ns, ret, e);
	if (r < 0)
		ignore_result(
			vmdir_remove(id,
				     NULL)); /* gone already, unless the supervisor was killed */
	return r;
}

int start_locked(const char *id, int lock, const struct progress *p, int64_t deadline_ns,
		 struct err *e)
{
	struct backend_owner *o;
	int r = launch(id, true, lock, p, deadline_ns, &o, e);

	return r < 0 ? r : start_keep(o, e);
}

int start_again(const char *id, const struct progress *p, int64_t deadline_ns, struct err *e)
{
	AUTO_FD dirfd = -1;
	int lock, r = vmdir_open(id, &dirfd, e);

	if (r < 0)
		return r;
	r = vmdir_lock(dirfd, LOCK_NS, &lock);
	if (r < 0)
		return err_set(e, ERR_CONFLICT, -r, "another process has the sandbox");
	return start_locked(id, lock, p, deadline_ns, e);
}

int start_keep(struct backend_owner *o, struct err *e)
{
	AUTO_BUF b;
	int r = send(o->fd, "keep\n", 5, MSG_NOSIGNAL) == 5 ? 0 : -EPIPE;

	buf_init(&b, LINE_CAP);
	if (r == 0)
		r = client_read_line(o->fd, &b, loop_now() + KEEP_NS, NULL);
	if (r == 0 && strcmp(b.p ? b.p : "", "{\"kept\":true}") != 0)
		r = -EPROTO;
	owner_free(o);
	return r < 0 ? err_set(e, ERR_UNAVAILABLE, -r, "the sandbox has ended") : 0;
}

void start_drop(struct backend_owner *o)
{
	fd_close(&o->fd);
	if (client_wait_unlocked(o->dirfd, loop_now() + DROP_NS) == 0)
		ignore_result(
			vmdir_remove(o->id, NULL)); /* only there when the supervisor was killed */
	owner_free(o);
}
