/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/qmp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The answers come in the order of the commands (the spec promises it for a monitor without "oob"),
 * so a queue of those who wait is enough. QEMU may be in the guest's hands: whatever does not fit
 * closes the connection. */

static void answer(struct qmp *q, const cJSON *ret, const char *why)
{
	qmp_done_fn *fn;
	void *arg;

	if (q->pending_len == 0)
		return;
	fn = q->pending[0].fn;
	arg = q->pending[0].arg;
	q->pending_len--;
	memmove(&q->pending[0], &q->pending[1], (size_t)q->pending_len * sizeof(q->pending[0]));
	if (fn)
		fn(arg, ret, why);
}

static void on_negotiated(void *arg, const cJSON *ret, const char *why)
{
	struct qmp *q = arg;

	(void)why;
	if (!ret)
		return;
	q->negotiated = true;
	if (q->ready)
		q->ready(q->arg);
}

static void on_line(struct line_peer *p, char *s, size_t n)
{
	struct qmp *q = p->arg;
	AUTO_JSN *j = jsn_parse(s, n, NULL);
	const cJSON *member;
	const char *text = NULL;

	if (n == 0)
		return;
	if (!j || !cJSON_IsObject(j)) {
		qmp_close(q);
		return;
	}
	if (cJSON_GetObjectItemCaseSensitive(j, "QMP")) {
		if (!q->negotiated && qmp_send(q, "qmp_capabilities", on_negotiated, q) < 0)
			qmp_close(q);
	} else if ((member = cJSON_GetObjectItemCaseSensitive(j, "return"))) {
		answer(q, member, NULL);
	} else if ((member = cJSON_GetObjectItemCaseSensitive(j, "error"))) {
		if (jsn_str(member, "desc", &text, NULL) <= 0)
			text = "no reason given";
		answer(q, NULL, text);
	} else if (jsn_str(j, "event", &text, NULL) == 1 && q->event) {
		q->event(q->arg, text, cJSON_GetObjectItemCaseSensitive(j, "data"));
	}
}

static void on_closed(struct line_peer *p, int error)
{
	(void)error;
	qmp_close(p->arg);
}

static const struct line_ops ops = { .line = on_line, .closed = on_closed };

int qmp_open(struct qmp *q, struct loop *l, int fd)
{
	int r = line_open(l, &q->peer, fd, QMP_LINE_MAX, &ops, q);

	q->negotiated = false;
	q->pending_len = 0;
	q->open = r == 0;
	return r;
}

void qmp_close(struct qmp *q)
{
	if (!q->open)
		return;
	q->open = false;
	line_close(&q->peer);
	while (q->pending_len)
		answer(q, NULL, "QEMU has gone");
}

int qmp_ask(struct qmp *q, const char *command, cJSON *args, qmp_done_fn *fn, void *arg)
{
	AUTO_JSN *j = cJSON_CreateObject();
	char *line = NULL;
	int r = -ENOMEM;

	if (j && args && !cJSON_AddItemToObject(j, "arguments", args)) {
		cJSON_Delete(args);
		return -ENOMEM;
	}
	if (!j)
		cJSON_Delete(args);
	if (!q->open)
		return -ENOTCONN;
	if (q->pending_len == QMP_PENDING_MAX)
		return -EBUSY;
	if (j && jsn_add_str(j, "execute", command))
		line = cJSON_PrintUnformatted(j);
	if (line)
		r = line_send(&q->peer, line);
	free(line);
	if (r < 0)
		return r;
	q->pending[q->pending_len].fn = fn;
	q->pending[q->pending_len].arg = arg;
	q->pending_len++;
	return 0;
}

int qmp_send(struct qmp *q, const char *command, qmp_done_fn *fn, void *arg)
{
	return qmp_ask(q, command, NULL, fn, arg);
}
