/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "httpd_int.h"

/*
 * An upgraded connection is, for the library, a suspended one: it keeps the descriptor and its place
 * in the count of connections, and looks at neither until MHD_UPGRADE_ACTION_CLOSE. That resumes it,
 * and the next run of the library completes the request (on_end) and closes the descriptor.
 * MHD_stop_daemon does the same for those that are left.
 */

static void on_upgraded(void *cls, struct MHD_Connection *con, void *req_cls, const char *p,
			size_t n, MHD_socket fd, struct MHD_UpgradeResponseHandle *h)
{
	struct httpd_req *r = cls;

	(void)con;
	(void)req_cls;
	r->x.upgraded = h;
	r->x.in_callback = true;
	r->x.on_upgrade(r->x.upgrade_arg, fd, p, n);
	r->x.in_callback = false;
}

static struct MHD_Response *make(struct httpd_req *r)
{
	return MHD_create_response_for_upgrade(on_upgraded, r);
}

void httpd_reply_upgrade(struct httpd_req *r, const char *protocol,
			 void (*fn)(void *arg, int fd, const char *p, size_t n), void *arg)
{
	struct httpd_exchange *x = &r->x;

	if (x->reply != HTTPD_REPLY_NONE || x->ended)
		return;
	x->status = MHD_HTTP_SWITCHING_PROTOCOLS;
	x->make = make;
	x->on_upgrade = fn;
	x->upgrade_arg = arg;
	x->reply = HTTPD_REPLY_UPGRADE;
	/* Of an upgraded connection the library tells the end while it holds the lock that changing this takes. */
	httpd_set_timeout(r, r->h->c.idle_s);
	if (httpd_add_header(r, "Upgrade", protocol) < 0)
		r->gone = true;
	httpd_settle(r);
}

void httpd_upgrade_done(struct httpd_req *r)
{
	struct MHD_UpgradeResponseHandle *h = r->x.upgraded;

	if (!h)
		return;
	r->x.upgraded = NULL;
	(void)MHD_upgrade_action(h, MHD_UPGRADE_ACTION_CLOSE);
	loop_arm(r->h->loop, &r->h->kick, 0);
}

bool httpd_is_http11(const struct httpd_req *r)
{
	return !strcmp(r->x.raw_end + 1,
		       "HTTP/1.1"); /* httpd_check_head has seen to it that it stands there */
}
