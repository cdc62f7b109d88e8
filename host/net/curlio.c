/* SPDX-License-Identifier: Apache-2.0 */
#include "host/net/curlio.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

/*
 * libcurl tells which descriptors and which time-out it waits for (socket and timer callbacks);
 * they become watches and one timer of the loop. Two rules of libcurl shape the rest: no handle may
 * be removed while libcurl is calling us, so a call ends only from finish(), after
 * curl_multi_socket_action has returned; and the timer callback must not call back, so it only arms
 * the loop's timer.
 */

struct curlio {
	struct loop *loop; /* borrowed */
	CURLM *multi;	   /* owned */
	struct loop_timer timer;
};

struct sock_watch {
	struct loop_watch w;
};

/* Every call that libcurl has finished with. done() may start and cancel calls, so the list is
 * asked again each time. */
static void finish(struct curlio *io)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(io->multi, &left))) {
		struct curlio_call *c = NULL;
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c);
		if (c)
			c->done(c, code);
	}
}

/* --- loop to libcurl --- */

static void act(struct curlio *io, curl_socket_t fd, int mask)
{
	int running;

	(void)curl_multi_socket_action(io->multi, fd, mask, &running);
	finish(io);
}

static void on_socket(struct loop_watch *w, uint32_t events)
{
	int mask = 0;

	if (events & (EPOLLIN | EPOLLHUP))
		mask |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (events & EPOLLERR)
		mask |= CURL_CSELECT_ERR;
	act(w->arg, w->fd, mask);
}

static void on_timer(struct loop_timer *t)
{
	act(t->arg, CURL_SOCKET_TIMEOUT, 0);
}

/* --- libcurl to loop --- */

static int socket_cb(CURL *easy, curl_socket_t fd, int what, void *arg, void *sock)
{
	struct curlio *io = arg;
	struct sock_watch *s = sock;
	uint32_t events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			loop_del(&s->w);
		free(s);
		(void)curl_multi_assign(io->multi, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	if (s) {
		/* The descriptor may be another file by now (host/agent/http.c), which epoll does not know. */
		if (loop_set(&s->w, events) == 0)
			return 0;
		loop_del(&s->w);
		return loop_add(io->loop, &s->w, fd, events) < 0 ? -1 : 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -1;
	s->w = (struct loop_watch)LOOP_WATCH_INIT;
	s->w.fn = on_socket;
	s->w.arg = io;
	if (loop_add(io->loop, &s->w, fd, events) < 0) {
		free(s);
		return -1;
	}
	(void)curl_multi_assign(io->multi, fd, s);
	return 0;
}

static int timer_cb(CURLM *multi, long ms, void *arg)
{
	struct curlio *io = arg;

	(void)multi;
	if (ms < 0)
		loop_disarm(&io->timer);
	else
		loop_arm(io->loop, &io->timer, (int64_t)ms * 1000000);
	return 0;
}

/* --- calls --- */

int curlio_add(struct curlio *io, struct curlio_call *c)
{
	if (curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c) != CURLE_OK ||
	    curl_multi_add_handle(io->multi, c->easy) != CURLM_OK)
		return -ENOMEM;
	return 0;
}

void curlio_remove(struct curlio *io, struct curlio_call *c)
{
	(void)curl_multi_remove_handle(io->multi, c->easy);
}

void curlio_kick(struct curlio *io)
{
	loop_arm(io->loop, &io->timer, 0);
}

int curlio_open(struct loop *l, struct curlio **ret)
{
	struct curlio *io = calloc(1, sizeof(*io));

	if (!io || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(io);
		return -ENOMEM;
	}
	io->loop = l;
	io->timer = (struct loop_timer)LOOP_TIMER_INIT;
	io->timer.fn = on_timer;
	io->timer.arg = io;
	io->multi = curl_multi_init();
	if (!io->multi ||
	    curl_multi_setopt(io->multi, CURLMOPT_SOCKETFUNCTION, socket_cb) != CURLM_OK ||
	    curl_multi_setopt(io->multi, CURLMOPT_SOCKETDATA, io) != CURLM_OK ||
	    curl_multi_setopt(io->multi, CURLMOPT_TIMERFUNCTION, timer_cb) != CURLM_OK ||
	    curl_multi_setopt(io->multi, CURLMOPT_TIMERDATA, io) != CURLM_OK) {
		curlio_free(io);
		return -ENOMEM;
	}
	*ret = io;
	return 0;
}

void curlio_free(struct curlio *io)
{
	if (!io)
		return;
	if (io->multi)
		(void)curl_multi_cleanup(io->multi);
	loop_disarm(&io->timer);
	free(io);
}
