/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_FAKE_BACKEND_H
#define ASB_FAKE_BACKEND_H

/*
 * A backend for unit tests of what lies above backends: its sandboxes are nothing but a state, and
 * its agent is whatever listens at the unix socket fake_agent. Include it in exactly one file of a
 * test.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host/backend.h"
#include "host/local/local.h"
#include "host/local/share.h"
#include "lib/str.h"

static char fake_agent[108];
static enum sandbox_state fake_state = SANDBOX_RUNNING;
static int fake_alive; /* machines made and not dropped or removed */
static int fake_create_error;

static int fake_create(const struct sandbox_spec *s, const char *id, const struct progress *p,
		       int64_t deadline_ns, struct backend_owner **ret, struct err *e)
{
	(void)s;
	(void)id;
	(void)p;
	(void)deadline_ns;
	if (fake_create_error)
		return err_set(e, ERR_IO, fake_create_error, "the fake machine");
	fake_alive++;
	*ret = NULL;
	return 0;
}

static int fake_keep(struct backend_owner *o, struct err *e)
{
	(void)o;
	(void)e;
	return 0;
}

static void fake_drop(struct backend_owner *o)
{
	(void)o;
	fake_alive--;
}

static int fake_info(const char *id, struct sandbox_info *ret, struct err *e)
{
	(void)e;
	*ret = (struct sandbox_info){ .state = fake_state, .reason = "the fake reason" };
	return str_format(ret->id, sizeof(ret->id), "%s", id);
}

static int fake_list(bool every, int (*fn)(void *arg, const struct sandbox_info *i), void *arg,
		     struct err *e)
{
	(void)every;
	(void)fn;
	(void)arg;
	(void)e;
	return 0;
}

static int fake_remove(const char *id, struct err *e)
{
	(void)id;
	(void)e;
	fake_alive--;
	return 0;
}

static int fake_connect(const char *id, uint16_t port, int64_t deadline_ns, int *ret_fd,
			int *ret_end, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)id;
	(void)port;
	(void)deadline_ns;
	(void)ret_end; /* its users pass NULL */
	memcpy(a.sun_path, fake_agent, sizeof(a.sun_path));
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		int r = err_set(e, ERR_UNAVAILABLE, errno, "the fake agent");

		if (fd >= 0)
			close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static void fake_collect(void)
{
}

const struct backend backend_local = {
	.name = "local",
	.create = fake_create,
	.keep = fake_keep,
	.drop = fake_drop,
	.info = fake_info,
	.list = fake_list,
	.remove = fake_remove,
	.connect = fake_connect,
	.collect = fake_collect,
};

int local_supervise_main(int argc, char **argv)
{
	(void)argv;
	return argc;
}

int share_dir(char ret[LOCAL_PATH_MAX], struct err *e)
{
	(void)ret;
	return err_set(e, ERR_NOT_FOUND, 0, "there is no share");
}

int local_doctor(local_doctor_fn *fn, void *arg)
{
	return fn(arg, "fake", "ok", "nothing to check");
}

#endif
