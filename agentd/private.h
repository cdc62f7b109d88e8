/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_PRIVATE_H
#define AGENTD_PRIVATE_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/*
 * The server end of agentd's private socket (docs/agent-api.md, "The private socket"): JSON lines
 * from asb-hooks. This file knows the protocol, the drain and its timers; agentd gives it the five
 * things that only agentd can do.
 */
struct cJSON;
struct private;

struct private_identity {
	const char *generation;	 /* 32 lower-case hexadecimal digits */
	const struct cJSON *env; /* object whose members are all strings, or NULL: as before */
	const char *agent_token; /* not empty, or NULL: as before */
};

struct private_ops {
	const char *version;
	/* OPEN false: new execs and writes are answered 503 until it is called with true. May be
	 * called twice with the same. */
	void (*admit)(void *arg, bool open);
	/* Requests that are being answered now. When it falls to 0, agentd calls private_idle. */
	unsigned (*in_flight)(void *arg);
	/* Starts a harmless program through the exec engine, whatever admission says. 0: agentd
	 * calls private_exec_checked once, from here or later. Else a negative errno with a
	 * message. Never called while one is under way. */
	int (*exec_check)(void *arg, struct err *e) MUST_CHECK;
	/* Takes over the new identity (copies what it keeps); all or nothing. 0, or a negative
	 * errno with a message. */
	int (*identity)(void *arg, const struct private_identity *id, struct err *e) MUST_CHECK;
	/* SIGTERM to the tree of every running command. */
	void (*terminate)(void *arg);
};

/* The members of an identity, checked; *ID points into Q. 0, or a negative errno with a message. */
int private_read_identity(const struct cJSON *q, struct private_identity *id, struct err *e)
	MUST_CHECK;

#define PRIVATE_CONNS_MAX 16 /* above it a connection is closed at once */

/*
 * Listens at PATH (unlinked first; its folder is made with 0755) with mode 0600. OPS and ARG are
 * borrowed until private_stop. 0, or a negative errno with a message.
 */
int private_start(struct loop *l, const char *path, const struct private_ops *ops, void *arg,
		  struct private **ret, struct err *e) MUST_CHECK;
void private_stop(struct private *p); /* NULL is fine; removes the socket */

/* Nothing is in flight now: whoever drains gets his answer. Cheap; fine at any time. */
void private_idle(struct private *p);

/* The program of ops->exec_check has ended: 0 when it ran and exited with 0, else a negative errno.
 */
void private_exec_checked(struct private *p, int result);

#endif
