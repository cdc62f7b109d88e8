/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/jsn.h"
#include "lib/sock.h"
#include "lib/str.h"

#define ANSWER_MAX (64UL << 10)
#define AGAIN_NS   (20 * 1000000LL)

static void finish(struct agent_call *c, int result, const cJSON *answer, const char *why)
{
	line_close(&c->peer);
	loop_disarm(&c->again);
	cJSON_free(c->request);
	c->request = NULL;
	c->done(c->arg, result, answer, why);
}

static void on_line(struct line_peer *p, char *s, size_t len)
{
	struct agent_call *c = p->arg;
	AUTO_JSN *j = jsn_parse(s, len, NULL);
	const char *why = "agentd's answer is no JSON object";
	bool good = false;

	if (cJSON_IsObject(j) && jsn_bool(j, "ok", &good, NULL) > 0) {
		why = "agentd refused";
		ignore_result(
			jsn_str(j, "message", &why, NULL)); /* else it keeps the words above */
	}
	if (good)
		finish(c, 0, j, "");
	else
		finish(c, -EPROTO, NULL, why);
}

static void on_closed(struct line_peer *p, int error)
{
	finish(p->arg, error ? error : -ECONNRESET, NULL,
	       error == -ETIMEDOUT ? "agentd does not answer" : "agentd hung up");
}

static int attempt(struct agent_call *c)
{
	static const struct line_ops ops = { on_line, on_closed };
	int fd, r = sock_connect(c->path, &fd);

	if (r == 0)
		r = line_open(c->loop, &c->peer, fd, ANSWER_MAX, &ops, c);
	if (r < 0)
		return r;
	line_deadline(&c->peer, c->end_ns - loop_now());
	return line_send(&c->peer, c->request);
}

static void on_again(struct loop_timer *t)
{
	struct agent_call *c = t->arg;
	int r = c->request ? attempt(c) : -ENOMEM;

	if (r == 0)
		return;
	if (c->patient && c->request && c->peer.fd < 0 && loop_now() < c->end_ns)
		loop_arm(c->loop, t, AGAIN_NS);
	else
		finish(c, r, NULL, "agentd is not there");
}

void agent_call(struct agent_call *c, struct loop *l, const char *path, cJSON *request,
		bool patient, int64_t limit_ns)
{
	c->loop = l;
	c->peer = (struct line_peer)LINE_PEER_INIT;
	c->again = (struct loop_timer){ .fn = on_again, .arg = c };
	c->request = request ? cJSON_PrintUnformatted(request) : NULL;
	cJSON_Delete(request);
	c->patient = patient;
	c->end_ns = loop_now() + limit_ns;
	if (str_format(c->path, sizeof(c->path), "%s", path) < 0)
		c->path[0] = '\0'; /* connecting then fails, as it would */
	loop_arm(l, &c->again, 0);
}
