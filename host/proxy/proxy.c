/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/proxy/guard.h"
#include "host/proxy/proxy_int.h"
#include "lib/fd.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * One process serves all: a server for each port, and libcurl with its kept connections to the endpoint. What AWS is asked for may take
 * minutes when it is slow, and would hold up every stream, so a child asks, and leaves the answer in the cache of tokens, from which
 * it is read here. All ports share one token.
 *
 * A token is looked at when a request comes and it was not for CHECK_NS. That is less than what a kept one must be good for (TOKEN_SPARE_S
 * of host/aws/token.h), so none expires between two looks. Time counts while this machine sleeps.
 *
 * The platform suspends a sandbox without traffic, whatever its processes do. As long as a request is under way its agent is asked
 * for a sign of life, so that an answer may take its time.
 */

#define CHECK_NS      (240LL * PROXY_SECOND)
#define RENEW_LEAST   (10LL * PROXY_SECOND)
#define ALIVE_NS      (20LL * PROXY_SECOND) /* a third of the least that AWS takes for idle */
#define PING_LIMIT_MS 10000L
#define POOL_BYTES    (256U << 10) /* both heads of a connection */
#define IDLE_S	      75	   /* a kept connection of a client */
#define SPARE_CONNS   56	   /* that are told that there are too many */

/* --- routes --- */

static int64_t boot_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * PROXY_SECOND + t.tv_nsec;
}

bool proxy_has_token(const struct proxy *p)
{
	return boot_now() - p->checked_ns < CHECK_NS;
}

/* The route to PORT: the one that a set of ports begins with. */
static int find_route(const struct proxy *p, uint16_t port, bool fresh, struct backend_route *ret,
		      struct err *e)
{
	struct backend_ports set = p->all;

	for (size_t i = 0; i < set.len; i++)
		if (set.port[i] == port) {
			set.port[i] = set.port[0];
			set.port[0] = port;
		}
	return p->c.backend->route(p->c.id, &set, fresh, ret, e);
}

static int set_route(struct proxy_port *o, struct err *e)
{
	struct backend_route next = { .ca_bundle = NULL };
	int r = find_route(o->proxy, o->spec.remote, false, &next, e);

	if (r < 0)
		return r;
	if (o->route.headers[0] && next.headers[0] &&
	    strcmp(o->route.headers[0], next.headers[0]) == 0) {
		backend_route_done(&next);
		return 0;
	}
	backend_route_done(&o->route);
	o->route = next;
	return 1;
}

static int load_routes(struct proxy *p, struct err *e)
{
	int r = set_route(&p->agent, e);

	if (r > 0)
		p->generation++;
	for (unsigned i = 0; i < p->len && r >= 0; i++)
		r = set_route(&p->ports[i], e);
	if (r < 0)
		return r;
	p->checked_ns = boot_now();
	return 0;
}

/* --- the child that asks --- */

NORETURN static void ask(const struct proxy *p, bool fresh, pid_t parent)
{
	struct backend_route route;
	struct err e = ERR_INIT;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	fd_close_from(3);
	if (find_route(p, p->agent.spec.remote, fresh, &route, &e) < 0) {
		out_warn("no token for %s: %s", p->c.name, e.msg);
		_exit(1);
	}
	_exit(0);
}

bool proxy_renew(struct proxy *p, bool fresh)
{
	pid_t parent = getpid(), pid;

	if (p->helper) {
		p->want_fresh = p->want_fresh || (fresh && !p->fresh);
		return true;
	}
	p->fresh = fresh;
	pid = fork();
	if (pid == 0)
		ask(p, fresh, parent);
	if (pid < 0) {
		out_warn("no token for %s: cannot start a process that asks for it: %s", p->c.name,
			 strerror(errno));
		return false;
	}
	p->helper = pid;
	if (fresh)
		p->renewed_ns = loop_now();
	return true;
}

bool proxy_renew_refused(struct proxy *p)
{
	if (p->helper && p->fresh)
		return true;
	if (p->renewed_ns && loop_now() - p->renewed_ns < RENEW_LEAST)
		return false;
	return proxy_renew(p, true);
}

bool proxy_reaped(struct proxy *p, pid_t pid, int status)
{
	struct err e = ERR_INIT;
	bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	if (!p || pid != p->helper)
		return false;
	p->helper = 0;
	if (good && load_routes(p, &e) < 0) {
		out_warn("no token for %s: %s", p->c.name, e.msg);
		good = false;
	} else if (WIFSIGNALED(status)) {
		out_warn("no token for %s: who asks for it was ended by signal %d", p->c.name,
			 WTERMSIG(status));
	}
	if (good && p->want_fresh) {
		p->want_fresh = false;
		if (proxy_renew(p, true))
			return true;
		good = false;
	}
	p->want_fresh = false;
	for (struct exchange *x = p->exchanges; x; x = x->next) {
		if (x->stage != STAGE_WAITING || x->retry)
			continue;
		if (good)
			exchange_send(x);
		else
			exchange_no_token(x);
	}
	return true;
}

void proxy_told(struct proxy *p, bool running)
{
	if (p)
		p->running = running;
}

/* --- signs of life --- */

static size_t drop(char *bytes, size_t size, size_t n, void *arg)
{
	(void)bytes;
	(void)arg;
	return size * n;
}

static void ping_end(struct proxy *p)
{
	if (!p->ping.easy)
		return;
	curlio_remove(p->io, &p->ping);
	curl_easy_cleanup(p->ping.easy);
	curl_slist_free_all(p->ping_heads);
	p->ping.easy = NULL;
	p->ping_heads = NULL;
}

static void on_pong(struct curlio_call *io, CURLcode code)
{
	(void)code; /* that bytes went through is all that was wanted */
	ping_end(io->arg);
}

/* On a connection of its own: a kept one may turn out dead, and nobody would notice. */
static void ping(struct proxy *p)
{
	CURL *c = curl_easy_init();
	struct curl_slist *l = NULL, *more;
	char url[BACKEND_URL_MAX + 16];
	bool good = c != NULL;

	for (size_t i = 0; good && p->agent.route.headers[i]; i++) {
		more = curl_slist_append(l, p->agent.route.headers[i]);
		good = more != NULL;
		l = more ? more : l;
	}
	p->ping = (struct curlio_call){ .easy = c, .done = on_pong, .arg = p };
	p->ping_heads = l;
	if (!good || str_format(url, sizeof(url), "%s/healthz", p->agent.route.url) < 0 ||
	    tls_use(p->tls, c) < 0 || curl_easy_setopt(c, CURLOPT_URL, url) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https") != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_HTTPHEADER, l) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, PING_LIMIT_MS) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L) != CURLE_OK ||
	    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop) != CURLE_OK ||
	    curlio_add(p->io, &p->ping) < 0) {
		curl_easy_cleanup(c);
		curl_slist_free_all(l);
		p->ping.easy = NULL;
		p->ping_heads = NULL;
	}
}

static void on_alive(struct loop_timer *t)
{
	struct proxy *p = t->arg;

	if (!p->exchanges)
		return;
	if (!proxy_has_token(p)) {
		ignore_result(proxy_renew(p, false)); /* again soon */
		loop_arm(p->c.loop, &p->alive, RENEW_LEAST);
		return;
	}
	if (!p->ping.easy)
		ping(p);
	loop_arm(p->c.loop, &p->alive, ALIVE_NS);
}

void proxy_busy(struct proxy *p)
{
	if (!p->alive.loop)
		loop_arm(p->c.loop, &p->alive, ALIVE_NS);
}

/* --- requests --- */

unsigned proxy_clients(const struct proxy *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->len; i++)
		n += p->ports[i].server ? httpd_connections(p->ports[i].server) : 0;
	return n;
}

/* For a text: of a stranger, and short. */
static const char *shown(const char *s, char out[static 81])
{
	ignore_result(str_format(out, 81, "%.80s", s)); /* it fits */
	str_clean(out);
	return out;
}

/* A picture or a script of another site: such requests of a browser have no Origin. A link to here is fine. */
static bool from_elsewhere(const struct httpd_req *r)
{
	const char *site = httpd_header(r, "Sec-Fetch-Site"),
		   *mode = httpd_header(r, "Sec-Fetch-Mode");

	return site && !strcasecmp(site, "cross-site") && !httpd_header(r, "Origin") &&
	       !(mode && !strcasecmp(mode, "navigate"));
}

static bool admit(const struct proxy_port *o, struct httpd_req *r)
{
	const char *host = httpd_header(r, "Host"), *origin = httpd_header(r, "Origin");
	char text[81];

	if (proxy_clients(o->proxy) > PROXY_CLIENTS_MAX) {
		ignore_result(httpd_add_header(r, "Connection", "close")); /* for want of memory */
		proxy_say(r, 503, "asb forward serves at most %d connections at a time: close some",
			  PROXY_CLIENTS_MAX);
	} else if (!guard_target(httpd_target(r)) || !strcmp(httpd_method(r), "CONNECT")) {
		proxy_say(r, 400,
			  "asb forward leads to one port of one sandbox and is no proxy for "
			  "other hosts: the request must name a path");
	} else if (!guard_host(host, o->spec.address)) {
		proxy_say(r, 403,
			  "asb forward does not answer as '%s', only as localhost or by an "
			  "address: else any web page could reach the sandbox through a browser on "
			  "this machine (DNS rebinding). Ask for http://localhost:%u/",
			  shown(host, text), o->spec.local);
	} else if (!guard_origin(origin, o->spec.address) || from_elsewhere(r)) {
		proxy_say(r, 403,
			  "asb forward does not let web pages of other sites (Origin: %s) into "
			  "the sandbox: only those that localhost serves",
			  shown(origin ? origin : "none, Sec-Fetch-Site: cross-site", text));
	} else {
		return true;
	}
	return false;
}

static void on_request(struct httpd_req *r)
{
	struct proxy_port *o = httpd_server_arg(r);

	if (admit(o, r))
		exchange_begin(o, r);
}

/* --- start and end --- */

static void add_port(struct backend_ports *set, uint16_t port)
{
	for (size_t i = 0; i < set->len; i++)
		if (set->port[i] == port)
			return;
	set->port[set->len++] = port;
}

int proxy_open(const struct proxy_config *c, const struct port_spec *ports, unsigned len,
	       struct proxy **ret, struct err *e)
{
	struct proxy *p = calloc(1, sizeof(*p));
	int r = p ? curlio_open(c->loop, &p->io) : -ENOMEM;

	if (r < 0) {
		free(p);
		return err_set(e, ERR_INTERNAL, -r, "starting the HTTP client");
	}
	p->c = *c;
	p->alive = (struct loop_timer)LOOP_TIMER_INIT;
	p->alive.fn = on_alive;
	p->alive.arg = p;
	p->running = true;
	p->agent.proxy = p;
	p->agent.spec.remote = PROTO_AGENT_PORT;
	for (unsigned i = 0; i < len && i < BACKEND_PORTS_MAX - 1; i++)
		add_port(&p->all, ports[i].remote);
	add_port(&p->all, PROTO_AGENT_PORT);
	r = load_routes(p, e);
	if (r == 0)
		r = tls_trust(p->agent.route.ca_bundle, &p->tls, e);
	if (r < 0)
		proxy_close(p);
	else
		*ret = p;
	return r;
}

int proxy_listen(struct proxy *p, int fd, const struct port_spec *spec, struct err *e)
{
	static const struct httpd_route any = { .pattern = "",
						.body = HTTPD_BODY_STREAM,
						.fn = on_request };
	struct proxy_port *o = &p->ports[p->len];
	struct httpd_config h = { .name = "forward",
				  .listen_fd = fd,
				  .any = &any,
				  .pool = POOL_BYTES,
				  .max_conns = PROXY_CLIENTS_MAX + SPARE_CONNS,
				  .idle_s = IDLE_S,
				  .arg = o };
	int r;

	if (p->len == ARRAY_LEN(p->ports)) {
		fd_close(&fd);
		return err_set(e, ERR_USAGE, E2BIG, "too many ports");
	}
	*o = (struct proxy_port){ .proxy = p, .spec = *spec };
	r = httpd_start(p->c.loop, &h, &o->server);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "serving port %u", spec->local);
	p->len++;
	return set_route(o, e) < 0 ? -EIO : 0;
}

void proxy_close(struct proxy *p)
{
	if (!p)
		return;
	if (p->helper)
		(void)kill(p->helper, SIGKILL);
	for (struct exchange *x = p->exchanges; x; x = x->next)
		httpd_reset(x->r);
	for (unsigned i = 0; i < p->len; i++) {
		httpd_stop(p->ports[i].server);
		backend_route_done(&p->ports[i].route);
	}
	ping_end(p);
	loop_disarm(&p->alive);
	backend_route_done(&p->agent.route);
	curlio_free(p->io);
	free(p);
}
