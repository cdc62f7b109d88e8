/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_QMP_H
#define ASB_LOCAL_QMP_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/jsn.h"
#include "lib/line.h"
#include "lib/loop.h"

/* QEMU Machine Protocol (QEMU's docs/interop/qmp-spec.rst): commands with answers in order, events
 * in between. */

#define QMP_LINE_MAX	(1U << 20)
#define QMP_PENDING_MAX 8

/* RET: the "return" member; NULL when it failed, and then WHY says how. Called exactly once for
 * each command. */
typedef void qmp_done_fn(void *arg, const cJSON *ret, const char *why);

struct qmp {
	struct line_peer peer;
	void *arg;
	void (*ready)(void *arg); /* the greeting is over, commands are taken */
	void (*event)(void *arg, const char *name, const cJSON *data);
	struct {
		qmp_done_fn *fn;
		void *arg;
	} pending[QMP_PENDING_MAX]; /* oldest first */
	int pending_len;
	bool negotiated;
	bool open;
};

/* FD: a connected socket, owned from here on. Set Q's arg, ready and event before. */
int qmp_open(struct qmp *q, struct loop *l, int fd) MUST_CHECK;
void qmp_close(struct qmp *q); /* commands under way fail; fine when closed */

/* A command with ARGS (an object, owned from here on; NULL: none). 0, -ENOTCONN, -ENOMEM, -EBUSY when
 * too many are under way; FN is called only after 0. qmp_send: the same without arguments. */
int qmp_ask(struct qmp *q, const char *command, cJSON *args, qmp_done_fn *fn, void *arg) MUST_CHECK;
int qmp_send(struct qmp *q, const char *command, qmp_done_fn *fn, void *arg) MUST_CHECK;

#endif
