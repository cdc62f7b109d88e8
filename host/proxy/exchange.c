/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/proxy/proxy_int.h"

/*
 * One request from its head to the end of its answer. It belongs to httpd, which calls on_end last, from the loop; libcurl's part is
 * ended there at the latest.
 *
 * Back-pressure: the client's bytes wait in UP, and when that is full httpd reads no more of them; the sandbox's wait in DOWN, and when
 * that is full libcurl is paused. Nothing is collected but that.
 *
 * What the endpoint itself refuses (403: the token; 502: nobody there, while the sandbox is on its way) has not reached the sandbox,
 * and is sent once more as long as all of the request that was sent is still in UP.
 *
 * An answer may begin before the client has sent its whole body, and both then go on, also when all of the answer is there: the
 * sandbox may need what it has said yes to. When it is no success, the rest of the body is dropped: libcurl stops sending then, as
 * servers do reading.
 */

#define STALL_S 3600 /* of a client that reads or sends nothing, where we wait for it */
#define ANSWER_NS \
	(900LL *  \
	 PROXY_SECOND) /* until the head of the answer, after the last byte of the request */

/* --- answers of ours --- */

static void say(struct httpd_req *r, int status, const char *fmt, va_list ap)
{
	char text[512];
	int n = vsnprintf(text, sizeof(text) - 1, fmt, ap); /* cut is fine */

	if (n < 0 || httpd_add_header(r, "X-Content-Type-Options", "nosniff") < 0)
		n = 0;
	if ((size_t)n > sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n] = '\n';
	httpd_reply(r, status, "text/plain; charset=utf-8", text, (size_t)n + 1);
}

void proxy_say(struct httpd_req *r, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(r, status, fmt, ap);
	va_end(ap);
}

void exchange_fail(struct exchange *x, int status, const char *fmt, ...)
{
	va_list ap;

	exchange_stop(x);
	loop_disarm(&x->limit);
	x->broken = true;
	if (x->stage == STAGE_ANSWER || x->stage == STAGE_RAW) {
		if (x->stage == STAGE_RAW)
			upgrade_turn(x);
		else
			httpd_wake(x->r);
		return;
	}
	x->stage = STAGE_ANSWER;
	x->replied = true;
	va_start(ap, fmt);
	say(x->r, status, fmt, ap);
	va_end(ap);
}

void exchange_no_token(struct exchange *x)
{
	exchange_fail(x, 502, "asb has no token for %s: its standard error says why",
		      proxy_of(x)->c.name);
}

/* --- libcurl's side --- */

static void resume(struct exchange *x)
{
	if (!x->added)
		return;
	(void)curl_easy_pause(x->io.easy, (x->recv_paused ? CURLPAUSE_RECV : 0) |
						  (x->send_paused ? CURLPAUSE_SEND : 0));
	curlio_kick(proxy_of(x)->io);
}

void exchange_resume_send(struct exchange *x)
{
	if (!x->send_paused)
		return;
	x->send_paused = false;
	resume(x);
}

void exchange_resume_recv(struct exchange *x)
{
	if (!x->recv_paused)
		return;
	x->recv_paused = false;
	resume(x);
}

static size_t read_cb(char *p, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	size_t have = x->up.len - x->up_at;

	n *= size;
	if (n > have)
		n = have;
	if (n == 0 && x->up_eof)
		return 0;
	if (n == 0) {
		x->send_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	memcpy(p, x->up.p + x->up_at, n);
	x->up_at += n;
	if (x->stage == STAGE_RAW) {
		upgrade_turn(x);
	} else {
		if (!x->replied)
			loop_arm(proxy_of(x)->c.loop, &x->limit, ANSWER_NS);
		else if (x->limit.loop)
			loop_arm(proxy_of(x)->c.loop, &x->limit, STALL_S * PROXY_SECOND);
		if (x->up_short)
			httpd_wake(x->r);
		x->up_short = false;
	}
	return n;
}

void exchange_stop(struct exchange *x)
{
	if (x->added)
		curlio_remove(proxy_of(x)->io, &x->io);
	x->added = false;
}

bool exchange_goes_on(struct exchange *x)
{
	if (!x->added || x->status >= 300)
		return false;
	if (!x->limit.loop)
		loop_arm(proxy_of(x)->c.loop, &x->limit, STALL_S * PROXY_SECOND);
	return true;
}

static void on_done(struct curlio_call *io, CURLcode code)
{
	struct exchange *x = io->arg;

	exchange_stop(x);
	answer_done(x, code);
}

bool exchange_can_repeat(const struct exchange *x)
{
	return !x->replied && !x->up_cut;
}

void exchange_send(struct exchange *x)
{
	exchange_stop(x);
	if (x->io.easy)
		curl_easy_cleanup(x->io.easy);
	curl_slist_free_all(x->heads);
	x->heads = NULL;
	x->io = (struct curlio_call){ .easy = curl_easy_init(), .done = on_done, .arg = x };
	ring_drop(&x->down, x->down.len);
	x->up_at = x->head_bytes = 0;
	x->fields = x->hints = 0;
	x->received = 0;
	x->up_eof = x->up_eof && !x->ws;
	x->head_done = x->in_head = x->recv_paused = x->send_paused = x->retry = false;
	x->generation = proxy_of(x)->generation;
	x->stage = STAGE_SENT;
	loop_arm(proxy_of(x)->c.loop, &x->limit, ANSWER_NS);
	if (!x->io.easy || request_set(x) < 0 || answer_set(x) < 0 ||
	    curl_easy_setopt(x->io.easy, CURLOPT_READFUNCTION, read_cb) != CURLE_OK ||
	    curl_easy_setopt(x->io.easy, CURLOPT_READDATA, x) != CURLE_OK ||
	    curlio_add(proxy_of(x)->io, &x->io) < 0)
		exchange_fail(x, 503, "asb forward is out of memory");
	else
		x->added = true;
}

/* --- httpd's side --- */

/* The client's body. What was sent already makes room when there is no other. */
static ssize_t on_sink(void *arg, const char *p, size_t n)
{
	struct exchange *x = arg;
	size_t room;

	if (n == 0) {
		x->asked = true;
		x->up_eof = !x->ws && !x->dropped;
		exchange_resume_send(x);
		return 0;
	}
	if (!x->has_body || (x->stage == STAGE_ANSWER && (!x->added || x->status >= 300))) {
		x->dropped = true;
		return (ssize_t)n;
	}
	if (x->up.len + n > PROXY_UP_MAX && x->up_at > 0) {
		buf_drop(&x->up, x->up_at);
		x->up_at = 0;
		x->up_cut = true;
	}
	room = PROXY_UP_MAX - x->up.len;
	if (room < n) {
		x->up_short = true;
		n = room;
	}
	if (buf_add(&x->up, p, n) < 0)
		return -ENOMEM;
	exchange_resume_send(x);
	return (ssize_t)n;
}

static void send_or_wait(struct exchange *x)
{
	struct proxy *p = proxy_of(x);

	x->retry = false;
	if (proxy_has_token(p)) {
		exchange_send(x);
		return;
	}
	x->stage = STAGE_WAITING;
	loop_arm(p->c.loop, &x->limit, PROXY_TOKEN_NS);
	if (!proxy_renew(p, false))
		exchange_no_token(x);
}

static void on_limit(struct loop_timer *t)
{
	struct exchange *x = t->arg;

	if (x->stage == STAGE_WAITING && x->retry) {
		send_or_wait(x);
	} else if (x->stage == STAGE_WAITING) {
		exchange_fail(x, 504,
			      "asb got no token for %s in time: does 'asb doctor' reach AWS?",
			      proxy_of(x)->c.name);
	} else if (x->stage == STAGE_RAW) {
		upgrade_cut(x);
	} else {
		exchange_fail(x, 504, "port %u of %s has not answered in time",
			      x->port->spec.remote, proxy_of(x)->c.name);
	}
}

static void on_gone(struct loop_timer *t)
{
	struct exchange *x = t->arg;

	/* Who has got all of an answer is not missed: the rest of its body goes on, within its limit. */
	if (!x->complete || x->down.len)
		httpd_reset(x->r);
}

/* It may only have ended its direction; but a silent answer for nobody would keep the sandbox awake for ever (answer.c sets it back). */
static void on_hup(void *arg)
{
	struct exchange *x = arg;

	loop_arm(proxy_of(x)->c.loop, &x->gone, PROXY_GONE_NS);
}

static void on_end(void *arg)
{
	struct exchange *x = arg;

	upgrade_done(x);
	exchange_stop(x);
	loop_disarm(&x->limit);
	loop_disarm(&x->gone);
	if (x->prev)
		x->prev->next = x->next;
	else
		proxy_of(x)->exchanges = x->next;
	if (x->next)
		x->next->prev = x->prev;
	if (x->io.easy)
		curl_easy_cleanup(x->io.easy);
	curl_slist_free_all(x->heads);
	buf_done(&x->up);
	ring_done(&x->down);
	free(x);
}

static struct exchange *make(struct proxy_port *port, struct httpd_req *r)
{
	struct exchange *x = calloc(1, sizeof(*x));
	struct proxy *p = port->proxy;

	if (!x)
		return NULL;
	x->port = port;
	x->r = r;
	x->limit = (struct loop_timer)LOOP_TIMER_INIT;
	x->gone = x->limit;
	x->limit.fn = on_limit;
	x->gone.fn = on_gone;
	x->limit.arg = x->gone.arg = x;
	x->client = (struct loop_watch)LOOP_WATCH_INIT;
	x->begun_ns = loop_now();
	buf_init(&x->up, PROXY_UP_MAX);
	ring_init(&x->down, PROXY_DOWN_MAX);
	x->next = p->exchanges;
	if (x->next)
		x->next->prev = x;
	p->exchanges = x;
	return x;
}

void exchange_begin(struct proxy_port *port, struct httpd_req *r)
{
	struct proxy *p = port->proxy;
	struct exchange *x = make(port, r);

	if (!x) {
		proxy_say(r, 503, "asb forward is out of memory");
		return;
	}
	x->ws = request_is_websocket(r);
	x->has_body = strcmp(httpd_method(r), "HEAD") != 0 && !x->ws &&
		      (httpd_content_length(r) > 0 || httpd_header(r, "Transfer-Encoding"));
	httpd_on_end(r, on_end, x);
	httpd_on_hup(r, on_hup, x);
	httpd_set_sink(r, on_sink, x);
	httpd_in_duplex(r);
	httpd_set_timeout(r, STALL_S);
	proxy_busy(p);
	send_or_wait(x);
}
