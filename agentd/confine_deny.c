/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine_int.h"
#include "lib/fd.h"
#include "limits.h"

/*
 * Who answers denied calls. Each confined command has a listener: the caller of a denied call stands until agentd has read what it
 * wanted, counted it and answered with the error. One answer a turn of the loop and listener, and a listener that asks more often
 * than LIMIT_DENIALS in LIMIT_DENIAL_NS rests for the remainder of that time: a flood costs its own command time and nobody else.
 *
 * A listener lives as long as a process under its filter, which may be longer than the exec. RECV does not block here: the
 * kernel counts requests up, and down once for each RECV, and epoll reports only when one waits; one whose caller has been killed
 * meanwhile gives ENOENT.
 */
#define FOREIGN CALLS_LEN /* a call of an ABI that the profile does not know */

struct listener {
	struct loop_watch watch;
	struct loop_timer rest;
	int fd; /* owned */
	enum confine_profile profile;
	int64_t since; /* of the window in which BURST were answered */
	unsigned burst;
	struct listener *next, **link;
};

static struct listener *listeners;
static unsigned count;
static struct loop *loop;
static uint64_t denied[CONFINE_RESTRICTED + 1][CALLS_LEN + 1];

static void listener_free(struct listener *n)
{
	loop_del(&n->watch);
	loop_disarm(&n->rest);
	fd_close(&n->fd);
	*n->link = n->next;
	if (n->next)
		n->next->link = n->link;
	count--;
	free(n);
}

static size_t call_of(const struct seccomp_data *d)
{
	for (size_t i = 0; i < CALLS_LEN; i++)
		if ((d->arch == AUDIT_NATIVE && calls[i].native == d->nr) ||
		    (d->arch == AUDIT_COMPAT && calls[i].compat == d->nr))
			return i;
	return FOREIGN;
}

static void rest(struct listener *n, int64_t ns)
{
	ignore_result(loop_set(&n->watch, 0));
	loop_arm(loop, &n->rest, ns);
}

static void pace(struct listener *n)
{
	int64_t now = loop_now();

	if (now - n->since >= LIMIT_DENIAL_NS) {
		n->since = now;
		n->burst = 0;
	}
	if (++n->burst >= LIMIT_DENIALS)
		rest(n, n->since + LIMIT_DENIAL_NS - now);
}

/* By the system call: the C libraries do not agree on the type of the number. */
static int request(const struct listener *n, unsigned long what, void *p)
{
	return syscall(SYS_ioctl, n->fd, what, p) < 0 ? -errno : 0;
}

static void answer(struct listener *n)
{
	struct seccomp_notif ask;
	struct seccomp_notif_resp reply;
	size_t i;
	int r;

	memset(&ask, 0, sizeof(ask));
	r = request(n, SECCOMP_IOCTL_NOTIF_RECV, &ask);
	if (r < 0) {
		if (r != -ENOENT && r != -EINTR)
			rest(n, LIMIT_DENIAL_NS);
		return;
	}
	i = call_of(&ask.data);
	memset(&reply, 0, sizeof(reply));
	reply.id = ask.id;
	reply.error = i == FOREIGN ? -EPERM : -(int)calls[i].errnum;
	if (request(n, SECCOMP_IOCTL_NOTIF_SEND, &reply) == 0)
		denied[n->profile][i]++;
	pace(n);
}

static void on_event(struct loop_watch *w, uint32_t events)
{
	struct listener *n = w->arg;

	if (events & EPOLLIN)
		answer(n);
	else if (events & (EPOLLHUP | EPOLLERR)) /* the last process under the filter is gone */
		listener_free(n);
}

static void on_rested(struct loop_timer *t)
{
	struct listener *n = t->arg;

	if (loop_set(&n->watch, EPOLLIN) < 0)
		listener_free(n); /* its denials are then ENOSYS: still denied */
}

void deny_init(struct loop *l)
{
	loop = l;
}

bool deny_room(void)
{
	return count < LIMIT_LISTENERS;
}

void deny_listen(int fd, enum confine_profile profile)
{
	struct listener *n = calloc(1, sizeof(*n));

	if (!n) {
		(void)close(fd);
		return;
	}
	n->fd = fd;
	n->profile = profile;
	n->watch.fn = on_event;
	n->rest.fn = on_rested;
	n->watch.arg = n->rest.arg = n;
	n->next = listeners;
	n->link = &listeners;
	if (listeners)
		listeners->link = &n->next;
	listeners = n;
	count++;
	if (loop_add(loop, &n->watch, fd, EPOLLIN) < 0)
		listener_free(n);
}

void deny_stop(void)
{
	while (listeners)
		listener_free(listeners);
}

void confine_each_denial(confine_denial_fn *fn, void *arg)
{
	for (int p = CONFINE_DEFAULT; p <= CONFINE_RESTRICTED; p++)
		for (size_t i = 0; i <= CALLS_LEN; i++)
			if (denied[p][i])
				fn(arg, confine_name((enum confine_profile)p),
				   i == FOREIGN ? "foreign-abi" : calls[i].name, denied[p][i]);
}
