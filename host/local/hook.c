/* SPDX-License-Identifier: Apache-2.0 */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "host/local/vm.h"
#include "lib/fd.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * POSTs to asb-hooks, and small questions to agentd: libcurl's multi interface in our loop. The "connection" that libcurl is given
 * is one end of a socket pair; the other end is adopted by link.c like any client's. One hook at a
 * time, a new connection for each, so there is one socket to watch and nothing to pool.
 */

#define ANSWER_MAX 4096
#define BODY_MAX   65536

struct hook {
	struct vm *vm;
	CURLM *multi;
	CURL *easy; /* NULL: none under way */
	struct curl_slist *headers;
	struct loop_watch watch; /* libcurl's socket */
	struct loop_timer timer, result_timer;
	hook_done_fn *fn;
	uint16_t port;
	bool question; /* hook_ask */
	struct buf answer;
	char *body; /* owned */
	int status;
	char text[ANSWER_MAX + 1];
};

static void finished(struct hook *h, int status, const char *text)
{
	h->status = status;
	if (str_format(h->text, sizeof(h->text), "%s", text) < 0)
		h->text[0] = '\0';
	loop_arm(&h->vm->loop, &h->result_timer, 0); /* not from inside libcurl */
}

static void drop(struct hook *h)
{
	loop_disarm(&h->timer);
	loop_disarm(&h->result_timer);
	if (h->easy) {
		(void)curl_multi_remove_handle(h->multi, h->easy);
		curl_easy_cleanup(h->easy); /* closes its socket */
		h->easy = NULL;
	}
	loop_del(&h->watch);
	free(h->body);
	h->body = NULL;
	buf_clear(&h->answer);
}

static void on_result(struct loop_timer *t)
{
	struct hook *h = t->arg;
	hook_done_fn *fn = h->fn;

	drop(h);
	fn(h->vm, h->status, h->text);
}

static void look(struct hook *h)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left))) {
		long status = 0;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
		if (m->data.result == CURLE_OPERATION_TIMEDOUT)
			finished(h, -ETIMEDOUT, "the guest's hooks did not answer in time");
		else if (m->data.result != CURLE_OK || status == 0)
			finished(h, -EIO,
				 m->data.result ? curl_easy_strerror(m->data.result)
						: "the answer has no status");
		else
			finished(h, (int)status, h->answer.p ? h->answer.p : "");
	}
}

static void act(struct hook *h, curl_socket_t fd, int bits)
{
	int running;

	if (curl_multi_socket_action(h->multi, fd, bits, &running) != CURLM_OK)
		finished(h, -EIO, "libcurl failed");
	else
		look(h);
}

static void on_socket(struct loop_watch *w, uint32_t events)
{
	int bits = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		   (events & EPOLLERR ? CURL_CSELECT_ERR : 0);

	act(w->arg, w->fd, bits);
}

static void on_timer(struct loop_timer *t)
{
	act(t->arg, CURL_SOCKET_TIMEOUT, 0);
}

/* --- what libcurl calls --- */
static int curl_watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	struct hook *h = arg;
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);

	(void)easy;
	(void)unused;
	if (what == CURL_POLL_REMOVE) {
		loop_del(&h->watch);
		return 0;
	}
	if (what == CURL_POLL_INOUT)
		events = EPOLLIN | EPOLLOUT;
	if (h->watch.loop && h->watch.fd != fd)
		loop_del(&h->watch);
	if (h->watch.loop)
		return loop_set(&h->watch, events) < 0 ? -1 : 0;
	return loop_add(&h->vm->loop, &h->watch, fd, events) < 0 ? -1 : 0;
}

static int curl_arm(CURLM *multi, long ms, void *arg)
{
	struct hook *h = arg;

	(void)multi;
	if (ms < 0)
		loop_disarm(&h->timer);
	else
		loop_arm(&h->vm->loop, &h->timer, (int64_t)ms * 1000000);
	return 0;
}

static curl_socket_t curl_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct hook *h = arg;
	int sv[2];

	(void)purpose;
	(void)address;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		return CURL_SOCKET_BAD;
	if (link_adopt(h->vm, sv[1], h->port) < 0) {
		fd_close(&sv[0]);
		return CURL_SOCKET_BAD;
	}
	return sv[0];
}

static int curl_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static size_t curl_answer(char *p, size_t size, size_t n, void *arg)
{
	struct hook *h = arg;

	(void)size; /* 1, says libcurl */
	if (buf_add(&h->answer, p, n) < 0)
		return 0; /* longer than any answer of asb-hooks */
	return n;
}

/* --- for life.c --- */
static bool set_options(struct hook *h, const char *path, int64_t limit_ns)
{
	CURL *c = h->easy;
	char url[256];

	if (str_format(url, sizeof(url), "http://127.0.0.1:%d%s", h->port, path) < 0)
		return false;
	return curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(limit_ns / 1000000) + 1) ==
		       CURLE_OK &&
	       (h->question || (curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers) == CURLE_OK &&
				curl_easy_setopt(c, CURLOPT_POSTFIELDS, h->body) == CURLE_OK)) &&
	       curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, curl_open) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, h) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, curl_connected) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, curl_answer) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, h) == CURLE_OK;
}

static int begin(struct hook *h, const char *path, const char *body, int64_t limit_ns,
		 hook_done_fn *fn)
{
	h->body = strdup(body);
	h->easy = curl_easy_init();
	if (!h->body || !h->easy || !set_options(h, path, limit_ns) ||
	    curl_multi_add_handle(h->multi, h->easy) != CURLM_OK) {
		drop(h);
		return -ENOMEM;
	}
	h->fn = fn;
	return 0;
}

int hook_post(struct vm *vm, const char *path, const char *body, int64_t limit_ns, hook_done_fn *fn)
{
	struct hook *h = vm->hook;

	if (h->easy && h->question)
		drop(h);
	if (h->easy)
		return -EBUSY;
	if (strlen(body) > BODY_MAX)
		return -EMSGSIZE;
	h->port = PROTO_HOOK_PORT;
	h->question = false;
	return begin(h, path, body, limit_ns, fn);
}

int hook_ask(struct vm *vm, uint16_t port, const char *path, int64_t limit_ns, hook_done_fn *fn)
{
	struct hook *h = vm->hook;

	if (h->easy)
		return -EBUSY;
	h->port = port;
	h->question = true;
	return begin(h, path, "", limit_ns, fn);
}

int hook_start(struct vm *vm)
{
	struct hook *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->vm = vm;
	h->watch = (struct loop_watch)LOOP_WATCH_INIT;
	h->watch.fn = on_socket;
	h->timer.fn = on_timer;
	h->result_timer.fn = on_result;
	h->watch.arg = h->timer.arg = h->result_timer.arg = h;
	buf_init(&h->answer, ANSWER_MAX);
	vm->hook = h;
	if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK)
		return -ENOMEM;
	h->multi = curl_multi_init();
	h->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!h->multi || !h->headers ||
	    curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, curl_watch) != CURLM_OK ||
	    curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) != CURLM_OK ||
	    curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, curl_arm) != CURLM_OK ||
	    curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) != CURLM_OK)
		return -ENOMEM;
	return 0;
}

void hook_stop(struct vm *vm)
{
	struct hook *h = vm->hook;

	if (!h)
		return;
	drop(h);
	if (h->multi)
		(void)curl_multi_cleanup(h->multi);
	curl_slist_free_all(h->headers);
	buf_done(&h->answer);
	vm->hook = NULL;
	free(h);
}
