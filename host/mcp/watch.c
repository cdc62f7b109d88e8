/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "host/mcp/server.h"
#include "host/state/state.h"
#include "lib/fd.h"

/*
 * What has changed: sandboxes come and go by replacing state.json, whoever does it, so its folder is watched (inotify(7)).
 * Changes that follow closely are told once.
 */

#define SETTLE_NS  (100 * 1000000LL)
#define URIS_MAX   (64U << 10) /* bytes of all resources of one subscriber */
#define META_BEGIN "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":"

static const char sandboxes_uri[] = "agent-sandbox://sandboxes";
static const char one_uri[] = "agent-sandbox://sandboxes/";

void sub_done(struct mcp_sub *sub)
{
	free(sub->uris);
	*sub = (struct mcp_sub){ .uris = NULL };
}

int sub_set(struct mcp_sub *sub, const char *uri, bool on)
{
	size_t len = 0, n = strlen(uri) + 1;
	char *at = NULL, *more;

	for (char *u = sub->uris; u && *u; u += strlen(u) + 1) {
		if (!strcmp(u, uri))
			at = u;
		len += strlen(u) + 1;
	}
	if (on && at)
		return 0;
	if (!on && at)
		memmove(at, at + n, len + 1 - (size_t)(at + n - sub->uris));
	if (!on)
		return 0;
	if (n == 1 || len + n + 1 > URIS_MAX)
		return n == 1 ? -EINVAL : -ENOSPC;
	more = realloc(sub->uris, len + n + 1);
	if (!more)
		return -ENOMEM;
	memcpy(more + len, uri, n);
	more[len + n] = '\0';
	sub->uris = more;
	return 0;
}

static void tell(struct mcp_server *s, const struct mcp_sub *sub, const char *what, const char *uri)
{
	AUTO_JSN *text = cJSON_CreateString(uri ? uri : "");
	char *quoted = text ? cJSON_PrintUnformatted(text) : NULL;
	AUTO_BUF b;
	int r = quoted ? 0 : -ENOMEM;

	buf_init(&b, 8192);
	if (r == 0)
		r = buf_addf(
			&b,
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/%s\",\"params\":{%s%s%s%s%s%s}}\n",
			what, sub->id[0] ? META_BEGIN : "", sub->id, sub->id[0] ? "}" : "",
			sub->id[0] && uri ? "," : "", uri ? "\"uri\":" : "", uri ? quoted : "");
	if (r == 0)
		server_send(s, b.p, b.len);
	free(quoted);
}

static void tell_changes(struct mcp_server *s, const struct mcp_sub *sub)
{
	if (sub->list)
		tell(s, sub, "list_changed", NULL);
	for (const char *u = sub->uris; u && *u; u += strlen(u) + 1)
		if (!strcmp(u, sandboxes_uri) || !strncmp(u, one_uri, sizeof(one_uri) - 1))
			tell(s, sub, "updated", u);
}

static void on_settled(struct loop_timer *t)
{
	struct mcp_server *s = t->arg;

	if (s->closing)
		return;
	tell_changes(s, &s->legacy);
	for (size_t i = 0; i < MCP_SUBS_MAX; i++)
		if (s->subs[i].id[0])
			tell_changes(s, &s->subs[i]);
}

static void on_notify(struct loop_watch *w, uint32_t events)
{
	_Alignas(struct inotify_event) char p[4096];
	struct mcp_server *s = w->arg;
	const char *path = getenv("AGENT_SANDBOX_STATE"), *slash = path ? strrchr(path, '/') : NULL;
	const char *name = !path || !*path ? "state.json" : slash ? slash + 1 : path;
	ssize_t n = read(w->fd, p, sizeof(p));

	(void)events;
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(p + at);

		if ((e->mask & IN_Q_OVERFLOW) || (e->len && !strcmp(e->name, name)))
			loop_arm(&s->loop, &s->settle, SETTLE_NS);
		at += (ssize_t)sizeof(*e) + e->len;
	}
}

void watch_begin(struct mcp_server *s)
{
	const char *dir;
	int r;

	if (s->notify_fd >= 0 || state_dir(&dir, NULL) < 0)
		return;
	s->notify = (struct loop_watch)LOOP_WATCH_INIT;
	s->notify.fn = on_notify;
	s->settle = (struct loop_timer)LOOP_TIMER_INIT;
	s->settle.fn = on_settled;
	s->notify.arg = s->settle.arg = s;
	s->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = s->notify_fd < 0 ? -errno
			     : inotify_add_watch(s->notify_fd, dir, IN_MOVED_TO | IN_CLOSE_WRITE);
	if (r < 0)
		r = -errno;
	else
		r = loop_add(&s->loop, &s->notify, s->notify_fd, EPOLLIN);
	if (r < 0) { /* no reason to fail */
		log_server(s, NULL, MCP_LOG_WARNING,
			   "changes of the sandboxes will not be told: %s", strerror(-r));
		fd_close(&s->notify_fd);
	}
}

void watch_end(struct mcp_server *s)
{
	if (s->notify_fd < 0)
		return;
	loop_del(&s->notify);
	loop_disarm(&s->settle);
	fd_close(&s->notify_fd);
}
