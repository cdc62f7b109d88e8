/* SPDX-License-Identifier: Apache-2.0 */
#include "host/backend.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fd.h"
#include "lib/proto.h"
#include "lib/str.h"

static const char *const state_names[] = {
	[SANDBOX_UNKNOWN] = "UNKNOWN",	     [SANDBOX_PENDING] = "PENDING",
	[SANDBOX_RUNNING] = "RUNNING",	     [SANDBOX_SUSPENDING] = "SUSPENDING",
	[SANDBOX_SUSPENDED] = "SUSPENDED",   [SANDBOX_TERMINATING] = "TERMINATING",
	[SANDBOX_TERMINATED] = "TERMINATED",
};
static_assert(ARRAY_LEN(state_names) == SANDBOX_STATE_COUNT, "every state has a name");

const char *sandbox_state_name(enum sandbox_state s)
{
	return (unsigned)s < SANDBOX_STATE_COUNT ? state_names[s] : "UNKNOWN";
}

const struct backend_ports backend_agent_port = { { PROTO_AGENT_PORT }, 1 };

static void wipe(char **s)
{
	if (*s)
		explicit_bzero(*s, strlen(*s));
	free(*s);
	*s = NULL;
}

void backend_route_done(struct backend_route *r)
{
	for (size_t i = 0; r->headers[i]; i++)
		wipe(&r->headers[i]);
	wipe(&r->protocols);
}

void backend_log_done(struct backend_log *l)
{
	if (l->done)
		l->done(l);
	fd_close(&l->fd);
	*l = (struct backend_log)BACKEND_LOG_NONE;
}

static struct {
	void (*fn)(void *arg, const char *text);
	void *arg;
} listener;

void backend_listen(void (*fn)(void *arg, const char *text), void *arg)
{
	listener.fn = fn;
	listener.arg = arg;
}

void backend_tell(const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	if (!listener.fn)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut text is fine */
	va_end(ap);
	listener.fn(listener.arg, text);
}

static struct {
	void (*fn)(void *arg);
	void *arg;
} turn;

void backend_on_turn(void (*fn)(void *arg), void *arg)
{
	turn.fn = fn;
	turn.arg = arg;
}

void backend_turn(void)
{
	if (turn.fn)
		turn.fn(turn.arg);
}

void image_built_done(struct image_built *b)
{
	free(b->log);
	b->log = NULL;
}

void image_users_add(struct image_users *u, const char *name)
{
	if (u->len < IMAGE_USERS_TOLD)
		u->at += (size_t)snprintf(u->text + u->at, sizeof(u->text) - u->at, "%s%.100s",
					  u->len ? ", " : "", name);
	u->len++;
}

const char *image_users_text(struct image_users *u)
{
	if (u->len > IMAGE_USERS_TOLD)
		(void)snprintf(u->text + u->at, sizeof(u->text) - u->at, " and %zu more",
			       u->len - IMAGE_USERS_TOLD);
	return u->text;
}
