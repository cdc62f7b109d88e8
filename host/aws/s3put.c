/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/aws.h"
#include "host/aws/s3.h"
#include "host/aws/s3int.h"
#include "host/aws/sigv4.h"
#include "host/aws/xml.h"
#include "lib/buf.h"
#include "lib/str.h"

/*
 * Objects over S3_PART_MAX go in parts, so that what a bad line costs is one part and somebody can be told how far it is. An upload that
 * fails is aborted; one that was killed is ended by the bucket's lifecycle, or when the bucket is deleted. A part that is sent twice
 * replaces itself.
 */

#define PARTS_MAX 10000
#define LIST_MAX  (1U << 20)

struct upload {
	struct aws *a;
	const struct s3_object *o;
	struct buf id;	  /* encoded */
	struct buf parts; /* CompleteMultipartUpload */
};

static int begin(struct upload *u, struct err *e)
{
	const struct s3_request q = { .what = "CreateMultipartUpload",
				      .method = "POST",
				      .bucket = u->o->bucket,
				      .owner = u->o->owner,
				      .key = u->o->key,
				      .query = "uploads",
				      .type = "application/zip" };
	struct aws_answer w;
	const char *id;
	int r = s3_call(u->a, &q, &w, e);

	id = xml_text(w.json, "InitiateMultipartUploadResult/UploadId");
	if (r == 0)
		r = id && *id ? sigv4_encode(&u->id, id, strlen(id), "") : -EBADMSG;
	aws_answer_done(&w);
	return r < 0 && e && !e->code ? err_set(e, ERR_INTERNAL, -r, "the id of an upload") : r;
}

static int part(struct upload *u, unsigned n, const char *p, size_t len, struct err *e)
{
	struct s3_request q = { .what = "UploadPart",
				.method = "PUT",
				.bucket = u->o->bucket,
				.owner = u->o->owner,
				.key = u->o->key,
				.body = p,
				.len = len };
	struct aws_answer w = { .attempts = 0 };
	AUTO_BUF query;
	int r;

	buf_init(&query, 4096);
	r = buf_addf(&query, "partNumber=%u&uploadId=%s", n, u->id.p);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "UploadPart");
	q.query = query.p;
	r = s3_call(u->a, &q, &w, e);
	if (r == 0 && !w.reply.etag[0])
		r = err_set(e, ERR_INTERNAL, EBADMSG, "UploadPart: the answer has no ETag");
	if (r == 0) {
		r = buf_adds(&u->parts, "<Part><ETag>");
		if (r == 0)
			r = xml_escape(&u->parts, w.reply.etag);
		if (r == 0)
			r = buf_addf(&u->parts, "</ETag><PartNumber>%u</PartNumber></Part>", n);
		r = r < 0 ? err_set(e, ERR_INTERNAL, -r, "UploadPart") : 0;
	}
	aws_answer_done(&w);
	return r;
}

/* METHOD with the upload's id: POST completes it, DELETE aborts it. */
static int finish(struct upload *u, const char *method, struct err *e)
{
	struct s3_request q = { .what = *method == 'P' ? "CompleteMultipartUpload"
						       : "AbortMultipartUpload",
				.method = method,
				.bucket = u->o->bucket,
				.owner = u->o->owner,
				.key = u->o->key };
	struct aws_answer w = { .attempts = 0 };
	const char *code, *why;
	AUTO_BUF query;
	int r;

	buf_init(&query, 4096);
	r = buf_addf(&query, "uploadId=%s", u->id.p);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "%s", q.what);
	q.query = query.p;
	if (*method == 'P') {
		q.type = "application/xml";
		q.body = u->parts.p;
		q.len = u->parts.len;
	}
	r = s3_call(u->a, &q, &w, e);
	code = xml_text(w.json, "Error/Code");
	why = xml_text(w.json, "Error/Message");
	if (r == 0 && code) /* a failure within a success */
		r = err_set(e, ERR_UNAVAILABLE, EIO, "%s: %.200s (%.100s)", q.what,
			    why && *why ? why : "it has failed", code);
	aws_answer_done(&w);
	return r;
}

static int all_parts(struct upload *u, struct err *e)
{
	const struct s3_object *o = u->o;
	size_t at = 0;
	int r = 0;

	for (unsigned n = 1; r == 0 && at < o->len; n++) {
		size_t len = o->len - at < S3_PART ? o->len - at : S3_PART;

		if (n > PARTS_MAX)
			return err_set(e, ERR_TOO_BIG, EFBIG, "%s has too many parts", o->key);
		if (o->told)
			o->told(o->told_arg, at, o->len);
		r = part(u, n, (const char *)o->body + at, len, e);
		at += len;
	}
	if (r == 0 && o->told)
		o->told(o->told_arg, at, o->len);
	return r;
}

static int put_parts(struct aws *a, const struct s3_object *o, struct err *e)
{
	struct upload u = { .a = a, .o = o };
	int r;

	buf_init(&u.id, 2048);
	buf_init(&u.parts, LIST_MAX);
	r = begin(&u, e);
	if (r == 0) {
		r = buf_adds(&u.parts, "<CompleteMultipartUpload " S3_XMLNS ">");
		r = r < 0 ? err_set(e, ERR_INTERNAL, -r, "uploading %s", o->key) : all_parts(&u, e);
		if (r == 0 && buf_adds(&u.parts, "</CompleteMultipartUpload>") < 0)
			r = err_set(e, ERR_INTERNAL, ENOMEM, "uploading %s", o->key);
		if (r == 0)
			r = finish(&u, "POST", e);
		if (r == -ENOENT) /* the first of two attempts may have completed it */
			r = s3_head_object(a, o->bucket, o->owner, o->key, e);
		if (r < 0)
			ignore_result(finish(&u, "DELETE", NULL)); /* else it expires */
	}
	buf_done(&u.id);
	buf_done(&u.parts);
	return r;
}

int s3_put_object(struct aws *a, const struct s3_object *o, struct err *e)
{
	const struct s3_request q = { .what = "PutObject",
				      .method = "PUT",
				      .bucket = o->bucket,
				      .owner = o->owner,
				      .key = o->key,
				      .type = "application/zip",
				      .body = o->body,
				      .len = o->len };
	struct aws_answer w;
	int r;

	if (o->len > S3_PART_MAX)
		return put_parts(a, o, e);
	if (o->told)
		o->told(o->told_arg, 0, o->len);
	r = s3_call(a, &q, &w, e);
	aws_answer_done(&w);
	return r;
}
