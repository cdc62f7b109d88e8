/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proto.h"
#include "lib/sock.h"
#include "lib/str.h"

#define CONNECTIONS_MAX JOB_WAITERS
#define IDLE_S		20
#define GRACE_MAX_MS	60000

static struct job jobs[JOB_PHASES];

static void on_hook(struct httpd_req *r)
{
	const char *name = httpd_segment(r, 0);
	size_t n;
	const char *body = httpd_body_data(r, &n);

	for (size_t i = 0; i < JOB_PHASES; i++)
		if (name && !strcmp(name, phases[i].name)) {
			job_ask(&jobs[i], r, body, n);
			return;
		}
	httpd_reply_error(r, 404, "Not Found");
}

/* Tells asb-init, whose socket takes the few bytes at once or not at all. */
static int send_power_off(const char *grace_ms)
{
	char line[64];
	AUTO_FD fd = -1;
	uint64_t ms;
	int r = sock_connect(PROTO_INIT_SOCKET, &fd);

	if (r < 0)
		return r;
	if (grace_ms && str_to_u64(grace_ms, 0, GRACE_MAX_MS, &ms) < 0)
		return -EINVAL;
	r = str_format(line, sizeof(line), "power-off%s%s\n", grace_ms ? " " : "",
		       grace_ms ? grace_ms : "");
	if (r < 0)
		return r;
	return write(fd, line, strlen(line)) == (ssize_t)strlen(line) ? 0 : -EIO;
}

static void on_power_off(struct httpd_req *r)
{
	int e = send_power_off(httpd_query(r, "grace_ms"));

	if (e == 0)
		httpd_reply(r, 202, NULL, "", 0);
	else if (e == -ENOENT)
		httpd_reply_error(r, 404,
				  "Not Found"); /* no VM of ours: this route does not exist */
	else if (e == -EINVAL)
		httpd_reply_error(r, 400, "grace_ms");
	else
		httpd_reply_error(r, 503, "asb-init does not answer");
}

static const struct httpd_route routes[] = {
	{ "POST", PROTO_HOOK_PREFIX "{}", HTTPD_BODY_BUFFER, PAYLOAD_BODY_MAX, on_hook,
	  HTTPD_OPEN },
	{ "POST", "/asb/v1/power-off", HTTPD_BODY_NONE, 0, on_power_off, HTTPD_OPEN },
	{ "", NULL, HTTPD_BODY_NONE, 0, NULL, 0 },
};

int server_start(struct hooks *h, uint16_t port, struct err *e)
{
	struct httpd_config c = { .name = "hooks",
				  .routes = routes,
				  .max_conns = CONNECTIONS_MAX,
				  .idle_s = IDLE_S,
				  .arg = h };
	struct httpd *server;
	int r;

	for (size_t i = 0; i < JOB_PHASES; i++)
		job_init(&jobs[i], h, &phases[i]);
	r = httpd_listen_tcp(h->bind_addr, port, &c.listen_fd);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "listen on port %u", (unsigned)port);
	r = httpd_start(h->loop, &c, &server);
	return r < 0 ? err_set(e, ERR_IO, -r, "start the server") : 0;
}
