/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "host/aws/arn.h"
#include "host/aws/logs.h"
#include "host/aws/vm.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * The log of a MicroVM as a file in memory that grows when it is asked to. What a reader has had is dropped once it is long, so that
 * following takes no more memory than the longest piece.
 *
 * A MicroVM writes only when it was started with a role and with logging, to the group of its image. AWS does not tell where: the names are
 * what was measured (logs.h).
 */

#define NAME_MAX_LOG 512
#define HELD_MAX     (1U << 20)
#define WHOLE_MAX    (48U << 20) /* of one reading */
#define PIECE	     (256U << 10)
#define MSG_MAX	     (2U << 20) /* of an event: AWS's most is 1 MiB */

struct vmlog {
	struct aws *a;
	char group[NAME_MAX_LOG + 1], stream[NAME_MAX_LOG + 1];
	struct logs_query q;
	uint64_t tail;
	bool wait;
	struct buf token, text;
	off_t size; /* of the file */
	int fd;	    /* the backend_log's */
};

/* --- events to lines --- */

static int flush(struct vmlog *l)
{
	ssize_t n;

	for (size_t at = 0; at < l->text.len; at += (size_t)n) {
		n = pwrite(l->fd, l->text.p + at, l->text.len - at, l->size);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0)
			return -errno;
		l->size += n;
	}
	buf_clear(&l->text);
	return l->size > (off_t)WHOLE_MAX ? -EFBIG : 0;
}

static int add_line(struct vmlog *l, const char *stamp, const char *p, size_t n)
{
	int r = buf_adds(&l->text, stamp);

	if (r == 0)
		r = buf_add(&l->text, p, n);
	return r < 0 ? r : buf_adds(&l->text, "\n");
}

/* Its lines, each with the event's time. */
static int on_event(void *arg, const struct logs_event *ev)
{
	struct vmlog *l = arg;
	time_t t = (time_t)(ev->time_ms / 1000);
	const char *p = ev->message;
	char day[32], stamp[48];
	struct tm tm;
	int r = 0;

	if (!gmtime_r(&t, &tm) || !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm))
		return -EOVERFLOW;
	ignore_result(str_format(stamp, sizeof(stamp), "%s.%03d000Z ", day,
				 (int)(ev->time_ms % 1000))); /* it fits */
	do {
		size_t n = strcspn(p, "\n");

		r = add_line(l, stamp, p, n);
		p += n + (p[n] == '\n');
		if (r == 0 && l->text.len >= PIECE)
			r = flush(l);
	} while (r == 0 && *p);
	return r;
}

/* --- reading --- */

static int explain(const struct vmlog *l, int r, struct err *e)
{
	if (r == -ENOENT) {
		(void)err_set(
			e, ERR_NOT_FOUND, 0,
			"there is no log %s in %s: nothing has been written, or the role of the "
			"MicroVM may not write it",
			l->stream, l->group);
		return -ENODATA;
	}
	if (r == -EFBIG || r == -ENOSPC)
		return err_set(e, ERR_TOO_BIG, EFBIG,
			       "the log is longer than %u MiB (a part of it: --tail, --since)",
			       WHOLE_MAX >> 20);
	if (e->code)
		(void)err_wrap(e, "the log %s", l->group);
	else
		(void)err_set(e, ERR_INTERNAL, -r, "the log %s", l->group);
	return r;
}

static int more(struct backend_log *b, struct err *e)
{
	struct vmlog *l = b->of;
	struct err why = ERR_INIT;
	int r;

	b->anew = l->size > (off_t)HELD_MAX;
	if (b->anew && ftruncate(l->fd, 0) < 0)
		return err_set(e, ERR_IO, errno, "the log");
	if (b->anew)
		l->size = 0;
	if (l->tail != UINT64_MAX && !l->token.len)
		r = logs_last(l->a, &l->q, l->tail, &l->token, on_event, l, &why);
	else
		r = logs_stream(l->a, &l->q, &l->token, on_event, l, &why);
	if (r == 0)
		r = flush(l);
	if (r == -ENOENT && l->wait) {
		l->tail = UINT64_MAX; /* what comes now is new, all of it */
		r = 0;
	}
	if (r == 0)
		return 0;
	r = explain(l, r, &why);
	if (e)
		*e = why;
	return r;
}

static void done(struct backend_log *b)
{
	struct vmlog *l = b->of;

	buf_done(&l->token);
	buf_done(&l->text);
	free(l);
}

/* --- where it is --- */

static int name_stream(struct vmlog *l, const char *id, const cJSON *doc, struct err *e)
{
	const cJSON *at = jsn_get(doc, "startedAt");
	const char *version = vm_text(doc, "imageVersion");
	double s = cJSON_IsNumber(at) ? cJSON_GetNumberValue(at) : 0;
	time_t t = s > 0 && s < 1e11 ? (time_t)s : 0;
	char day[16];
	struct tm tm;

	if (!t || !version || !gmtime_r(&t, &tm) || !strftime(day, sizeof(day), "%Y/%m/%d", &tm) ||
	    str_format(l->stream, sizeof(l->stream), "%s[%s]%s", day, version, id) < 0)
		return err_set(e, ERR_INTERNAL, EBADMSG, "when the MicroVM was started");
	return 0;
}

static int name_group(struct vmlog *l, const char *wanted, const cJSON *doc, struct err *e)
{
	const char *arn = vm_text(doc, "imageArn");
	struct image_arn image;
	int r;

	if (wanted) {
		size_t n = strspn(wanted, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					  "0123456789_-/.#");

		if (!n || wanted[n] || n > NAME_MAX_LOG)
			return err_set(e, ERR_INVALID, 0, "'%.80s' is not the name of a log group",
				       wanted);
		return str_format(l->group, sizeof(l->group), "%s", wanted);
	}
	r = arn_image(arn ? arn : "", &image, e);
	return r < 0 ? r : str_format(l->group, sizeof(l->group), "%s%s", LOGS_GROUP, image.name);
}

/* Where the log of the MicroVM ID is, as far as it has one. */
static int locate(struct vmlog *l, const char *id, const char *group, struct err *e)
{
	AUTO_JSN *doc = NULL;
	int r = vm_get(l->a, id, &doc, e);

	if (r < 0)
		return r;
	if (!vm_text(doc, "executionRoleArn")) {
		(void)err_set(e, ERR_NOT_FOUND, 0,
			      "the MicroVM has no log: it was started without a role that could "
			      "write one (asb create --role ARN)");
		return -ENODATA;
	}
	r = name_group(l, group, doc, e);
	if (r == 0)
		r = name_stream(l, id, doc, e);
	l->q.group = l->group;
	l->q.stream = l->stream;
	return r;
}

int vmlog_open(struct aws *a, const char *id, const struct log_wish *w, struct backend_log *ret,
	       struct err *e)
{
	struct vmlog *l = calloc(1, sizeof(*l));
	int r;

	*ret = (struct backend_log){ .fd = memfd_create("log", MFD_CLOEXEC) };
	if (!l || ret->fd < 0) {
		r = err_set(e, ERR_INTERNAL, l ? errno : ENOMEM, "the log");
		free(l);
		backend_log_done(ret);
		return r;
	}
	*l = (struct vmlog){ .a = a, .fd = ret->fd, .tail = w->tail, .wait = w->wait };
	buf_init(&l->token, LOGS_TOKEN_MAX);
	buf_init(&l->text, PIECE + MSG_MAX);
	if (w->since_ns > 0)
		l->q.since_ms = w->since_ns / 1000000;
	ret->more = more;
	ret->done = done;
	ret->of = l;
	r = locate(l, id, w->group, e);
	if (r == 0)
		r = more(ret, e);
	if (r < 0)
		backend_log_done(ret);
	return r;
}
