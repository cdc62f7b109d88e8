/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/backend.h"
#include "host/local/children.h"
#include "host/local/client.h"
#include "host/local/expiry.h"
#include "host/local/imageops.h"
#include "host/local/saved.h"
#include "host/local/snapshot.h"
#include "host/local/start.h"
#include "host/local/vmdir.h"
#include "host/local/wake.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/pretty.h"
#include "lib/sock.h"
#include "lib/str.h"

/*
 * The local backend as commands see it. State comes from the folders and their locks, never from
 * QEMU; operations go to the supervisor's ctl.sock; connections to its link.sock.
 */

#define SUSPEND_NS \
	930000000000LL /* a large memory on a slow disk; the supervisor gives up before */
#define REMOVE_NS    30000000000LL
#define ASK_AGAIN_NS 20000000L
#define DROP_NS	     5000000000LL  /* for a lock that is only looked at */
#define OFF_EXTRA_NS 30000000000LL /* on top of the grace: hooks, QMP, and killing */
#define ANSWER_CAP   512
#define INSPECT_CAP  (256U << 10)

static int local_suspend(const char *id, struct err *e)
{
	struct sandbox_info i;
	AUTO_FD dirfd = -1;
	int r = vmdir_info(id, &i, e);

	if (r < 0)
		return r;
	if (i.state == SANDBOX_TERMINATED)
		return err_set(e, ERR_CONFLICT, 0, "the sandbox is not running");
	r = vmdir_open(id, &dirfd, e);
	if (r == 0)
		r = client_ask(dirfd, "{\"op\":\"suspend\"}", loop_now() + SUSPEND_NS, NULL, e);
	if (r == 0 &&
	    saved_is_there(
		    dirfd)) /* then its supervisor ends, and it may be started again at once */
		r = client_wait_unlocked(dirfd, loop_now() + OFF_EXTRA_NS);
	return r;
}

static int local_resume(const char *id, const struct progress *p, int64_t deadline_ns,
			struct err *e)
{
	AUTO_FD dirfd = -1;
	int r = vmdir_open(id, &dirfd, e);

	if (r < 0)
		return r;
	expiry_enforce(dirfd);
	if (!vmdir_is_locked(dirfd))
		return start_again(id, p, deadline_ns, e);
	return client_ask(dirfd, "{\"op\":\"resume\"}", deadline_ns, NULL, e);
}

/* Of one that is suspended only the disk stays. */
static int forget_saved(int dirfd, struct err *e)
{
	AUTO_FD lock = -1;
	int r = vmdir_lock(dirfd, DROP_NS, &lock); /* nobody starts it from there meanwhile */

	if (r < 0)
		return err_set(e, ERR_CONFLICT, -r, "another process has the sandbox");
	return saved_drop(dirfd, e);
}

static int local_power_off(const char *id, int64_t grace_ns, struct err *e)
{
	char request[80];
	int64_t deadline = loop_now() + grace_ns + OFF_EXTRA_NS;
	AUTO_FD dirfd = -1;
	int r = vmdir_open(id, &dirfd, e);

	if (r == 0 && !vmdir_is_locked(dirfd))
		return forget_saved(dirfd, e);
	if (r < 0)
		return r;
	(void)snprintf(request, sizeof(request), "{\"op\":\"power_off\",\"grace_ms\":%lld}",
		       (long long)(grace_ns / 1000000));
	r = client_ask(dirfd, request, deadline, NULL, e);
	if (r < 0 && vmdir_is_locked(dirfd))
		return r;
	r = client_wait_unlocked(dirfd, deadline); /* it may be started again at once */
	return r < 0 ? err_set(e, ERR_TIMEOUT, -r, "the sandbox's supervisor does not end") : 0;
}

/* Ends whoever has the sandbox, and takes its lock: from there on nobody can start it. One whose supervisor does not
 * listen yet is asked again. */
static int seize(int dirfd, int64_t deadline, int *ret_lock, struct err *e)
{
	const struct timespec step = { .tv_nsec = ASK_AGAIN_NS };
	int r;

	while ((r = vmdir_lock(dirfd, 0, ret_lock)) == -EWOULDBLOCK) {
		r = client_ask(dirfd, "{\"op\":\"remove\"}", deadline, NULL, e);
		if (r == 0 && client_wait_unlocked(dirfd, deadline) == 0)
			continue;
		if (loop_now() >= deadline)
			return r < 0 ? r
				     : err_set(e, ERR_TIMEOUT, ETIMEDOUT,
					       "the sandbox's supervisor does not end");
		(void)nanosleep(&step, NULL);
	}
	return r < 0 && r != -ENOENT ? err_set(e, ERR_IO, -r, "the sandbox's lock") : 0;
}

static int local_remove(const char *id, struct err *e)
{
	struct err why = ERR_INIT;
	AUTO_FD dirfd = -1;
	AUTO_FD lock = -1;
	int r = vmdir_open(id, &dirfd, e);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = seize(dirfd, loop_now() + REMOVE_NS, &lock, &why);
	if (r < 0) {
		if (e)
			*e = why;
		return r;
	}
	return vmdir_remove(
		id, e); /* what is left of it when its supervisor was killed, or had ended before */
}

struct each {
	int (*fn)(void *arg, const struct sandbox_info *i);
	void *arg;
};

static int each_one(void *arg, const char *id)
{
	const struct each *each = arg;
	struct sandbox_info i;
	struct err e = ERR_INIT;

	if (vmdir_info(id, &i, &e) == 0)
		return each->fn(each->arg, &i);
	if (e.code == ERR_NOT_FOUND) /* removed while we look */
		return 0;
	i = (struct sandbox_info){ .state = SANDBOX_UNKNOWN };
	if (str_format(i.id, sizeof(i.id), "%s", id) < 0 ||
	    str_format(i.reason, sizeof(i.reason), "%.250s", e.msg) < 0)
		return 0;
	return each->fn(each->arg, &i);
}

static int local_list(bool every, int (*fn)(void *arg, const struct sandbox_info *i), void *arg,
		      struct err *e)
{
	struct each each = { fn, arg };
	int r = vmdir_present(e);

	(void)every;
	return r < 0 ? r : vmdir_each(each_one, &each, e);
}

static int read_object(int dirfd, const char *name, cJSON **ret)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, INSPECT_CAP);
	r = fd_read_file(dirfd, name, &b);
	if (r == 0)
		*ret = jsn_parse(b.p ? b.p : "", b.len, NULL);
	return r < 0 ? r : *ret ? 0 : -EINVAL;
}

/* vm.json, status.json and, when it runs, what the supervisor says of itself. */
static int local_inspect(const char *id, char **ret_json, struct err *e)
{
	AUTO_JSN *doc = cJSON_CreateObject();
	AUTO_FD dirfd = -1;
	AUTO_BUF b;
	struct sandbox_info i;
	cJSON *part = NULL;
	int r = vmdir_info(id, &i, e);

	buf_init(&b, INSPECT_CAP);
	if (r == 0)
		r = vmdir_open(id, &dirfd, e);
	if (r < 0)
		return r;
	if (read_object(dirfd, "vm.json", &part) == 0 &&
	    !cJSON_AddItemToObject(doc, "config", part))
		cJSON_Delete(part);
	part = NULL;
	if (!doc || !jsn_add_str(doc, "state", sandbox_state_name(i.state)) ||
	    !jsn_add_str(doc, "accel", i.accel) || !jsn_add_str(doc, "reason", i.reason) ||
	    (i.ends_ms && !jsn_add_i64(doc, "ends_ms", i.ends_ms)))
		return err_set(e, ERR_INTERNAL, ENOMEM, "inspect");
	if (i.state != SANDBOX_TERMINATED &&
	    client_ask(dirfd, "{\"op\":\"info\"}", loop_now() + 2000000000, &part, NULL) == 0 &&
	    !cJSON_AddItemToObject(doc, "supervisor", part))
		cJSON_Delete(part);
	r = pretty_json(doc, &b);
	*ret_json = r == 0 ? buf_take(&b) : NULL;
	return *ret_json ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "inspect");
}

/* Why nobody listens on link.sock. */
static int not_running(const char *id, struct err *e)
{
	struct sandbox_info i;
	int r = vmdir_info(id, &i, e);

	if (r < 0)
		return r;
	if (i.state == SANDBOX_SUSPENDED)
		return err_set(e, ERR_UNAVAILABLE, ENOTCONN,
			       "the sandbox is suspended: `asb start` lets it go on");
	if (i.state == SANDBOX_TERMINATED)
		return err_set(e, ERR_UNAVAILABLE, ENOTCONN,
			       "the sandbox has ended%s%s: `asb start` runs it again",
			       i.reason[0] ? ": " : "", i.reason);
	return err_set(e, ERR_UNAVAILABLE, ENOTCONN, "the sandbox is still starting");
}

/* The answer to CONNECT: "OK", or "ERR <code>: <message>". */
static int check_answer(const char *s, struct err *e)
{
	const char *colon;
	char code[32];

	if (!strcmp(s, "OK"))
		return 0;
	colon = str_starts(s, "ERR ") ? strstr(s, ": ") : NULL;
	if (!colon || str_format(code, sizeof(code), "%.*s", (int)(colon - s - 4), s + 4) < 0)
		return err_set(e, ERR_INTERNAL, EPROTO, "the sandbox's supervisor");
	(void)err_set(e, client_err_code(code), 0, "%s", colon + 2);
	return -ECONNREFUSED;
}

/* The line, and when RET_END is not NULL one end of a pair for the supervisor to keep. */
static int send_request(int fd, uint16_t port, int *ret_end)
{
	AUTO_FD theirs = -1;
	char line[16];
	int pair[2], n = snprintf(line, sizeof(line), "CONNECT %u\n", port);

	if (ret_end) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return -errno;
		*ret_end = pair[0];
		theirs = pair[1];
	}
	return sock_send_fd(fd, line, (size_t)n, theirs);
}

/* A supervisor that does not know of it (asb was updated while the sandbox ran) has let its end go. */
static void drop_untold(int *fd)
{
	char byte;

	if (*fd >= 0 && recv(*fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		fd_close(fd);
}

static int local_connect(const char *id, uint16_t port, int64_t deadline_ns, int *ret_fd,
			 int *ret_end, struct err *e)
{
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	AUTO_FD end = -1;
	AUTO_BUF b;
	int r = vmdir_open(id, &dirfd, e);

	buf_init(&b, ANSWER_CAP);
	if (r < 0)
		return r;
	if (client_dial(dirfd, "link.sock", &fd) < 0 ||
	    send_request(fd, port, ret_end ? &end : NULL) < 0)
		return not_running(id, e);
	r = client_read_line(fd, &b, deadline_ns, NULL);
	if (r == -ETIMEDOUT)
		return err_set(e, ERR_TIMEOUT, ETIMEDOUT, "connecting to port %u in the sandbox",
			       port);
	if (r < 0)
		return not_running(id, e);
	r = check_answer(b.p ? b.p : "", e);
	if (r < 0)
		return r;
	drop_untold(&end);
	if (ret_end)
		*ret_end = fd_take(&end);
	*ret_fd = fd_take(&fd);
	return 0;
}

static int local_open_log(const char *id, const struct log_wish *w, struct backend_log *ret,
			  struct err *e)
{
	AUTO_FD dirfd = -1;
	int r = w->group ? err_set(e, ERR_USAGE, EINVAL, "a log group: that is of AWS")
			 : vmdir_open(id, &dirfd, e);

	if (r < 0)
		return r;
	ret->fd = openat(dirfd, "console.log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return ret->fd < 0 ? err_set(e, ERR_IO, errno, "console.log of the sandbox") : 0;
}

static void local_collect(void)
{
	vmdir_collect();
	vmdir_making();
}

const struct backend backend_local = {
	.name = "local",
	.create = start_create,
	.keep = start_keep,
	.drop = start_drop,
	.info = vmdir_info,
	.list = local_list,
	.inspect = local_inspect,
	.suspend = local_suspend,
	.resume = local_resume,
	.wake = wake,
	.power_off = local_power_off,
	.remove = local_remove,
	.branch = children_make,
	.connect = local_connect,
	.open_log = local_open_log,
	.collect = local_collect,
	.snapshots = &snapshots_local,
	.prune = imageops_prune,
	.images = &imageops_local,
};
