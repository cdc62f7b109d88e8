/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/s3.h"

#include <bearssl.h>
#include <errno.h>
#include <string.h>

#include "host/aws/aws.h"
#include "host/aws/s3int.h"
#include "host/aws/sigv4.h"
#include "host/aws/xml.h"
#include "lib/b64.h"
#include "lib/buf.h"
#include "lib/str.h"

/*
 * Settings and deletions must come with a checksum, and objects may: x-amz-checksum-sha256 is sent with every body, so that S3
 * verifies what it got.
 */

#define DELETE_MAX  1000 /* keys of one DeleteObjects */
#define ROUNDS_MAX  10000
#define REQUEST_MAX (4U << 20)
#define UPLOAD_NS   (15LL * 60 * 1000000000)

int s3_call(struct aws *a, const struct s3_request *q, struct aws_answer *ret, struct err *e)
{
	struct sigv4_header heads[2];
	struct aws_call c = { .service = &aws_s3,
			      .what = q->what,
			      .method = q->method,
			      .bucket = q->bucket,
			      .query = q->query,
			      .content_type = q->type,
			      .heads = heads,
			      .body = q->body,
			      .body_len = q->len,
			      .xml = true };
	uint8_t sum[br_sha256_SIZE];
	char text[B64_LEN(br_sha256_SIZE) + 1];
	br_sha256_context sha;
	AUTO_BUF path;
	int r;

	*ret = (struct aws_answer){ .attempts = 0 };
	buf_init(&path, 8192);
	r = buf_adds(&path, "/");
	if (r == 0 && q->key)
		r = sigv4_encode(&path, q->key, strlen(q->key), "/");
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "%s", q->what);
	c.path = path.p;
	if (q->owner)
		heads[c.heads_len++] =
			(struct sigv4_header){ "x-amz-expected-bucket-owner", q->owner };
	if (q->len) {
		br_sha256_init(&sha);
		br_sha256_update(&sha, q->body, q->len);
		br_sha256_out(&sha, sum);
		b64_encode(sum, sizeof(sum), text);
		heads[c.heads_len++] = (struct sigv4_header){ "x-amz-checksum-sha256", text };
		c.limit_ns = q->len > (1U << 20) ? UPLOAD_NS : 0;
		c.attempt_ns = c.limit_ns;
	}
	return aws_call(a, &c, ret, e);
}

static int simple(struct aws *a, const struct s3_request *q, char code[CALL_CODE_MAX],
		  struct err *e)
{
	struct aws_answer w;
	int r = s3_call(a, q, &w, e);

	if (code)
		ignore_result(str_format(code, CALL_CODE_MAX, "%s", w.code)); /* fits */
	aws_answer_done(&w);
	return r;
}

int s3_head_bucket(struct aws *a, const char *bucket, const char *owner, struct err *e)
{
	const struct s3_request q = {
		.what = "HeadBucket", .method = "HEAD", .bucket = bucket, .owner = owner
	};

	return simple(a, &q, NULL, e);
}

int s3_create_bucket(struct aws *a, const char *bucket, const char *owner, struct err *e)
{
	struct s3_request q = { .what = "CreateBucket", .method = "PUT", .bucket = bucket };
	char body[256], code[CALL_CODE_MAX];
	const char *region;
	int r = aws_region(a, &region, e);

	if (r < 0)
		return r;
	if (strcmp(region, "us-east-1") != 0) {
		r = str_format(body, sizeof(body),
			       "<CreateBucketConfiguration " S3_XMLNS "><LocationConstraint>%s"
			       "</LocationConstraint></CreateBucketConfiguration>",
			       region);
		if (r < 0)
			return err_set(e, ERR_INTERNAL, -r, "CreateBucket");
		q.type = "application/xml";
		q.body = body;
		q.len = strlen(body);
	}
	r = simple(a, &q, code, e);
	if (r < 0 && strcmp(code, "BucketAlreadyOwnedByYou") == 0)
		return 0;
	if (r < 0 && strcmp(code, "BucketAlreadyExists") == 0) /* some S3s say so of one's own */
		return s3_head_bucket(a, bucket, owner, e) == 0 ? 0 : -EEXIST;
	return r;
}

int s3_configure(struct aws *a, const char *bucket, const char *owner, const char *what,
		 const char *document, struct err *e)
{
	char name[64];
	const struct s3_request q = { .what = name,
				      .method = "PUT",
				      .bucket = bucket,
				      .owner = owner,
				      .query = what,
				      .type = document[0] == '{' ? "application/json"
								 : "application/xml",
				      .body = document,
				      .len = strlen(document) };

	if (str_format(name, sizeof(name), "setting the bucket's %s", what) < 0)
		return -EINVAL;
	return simple(a, &q, NULL, e);
}

int s3_head_object(struct aws *a, const char *bucket, const char *owner, const char *key,
		   struct err *e)
{
	const struct s3_request q = {
		.what = "HeadObject", .method = "HEAD", .bucket = bucket, .owner = owner, .key = key
	};

	return simple(a, &q, NULL, e);
}

int s3_delete_object(struct aws *a, const char *bucket, const char *owner, const char *key,
		     struct err *e)
{
	const struct s3_request q = { .what = "DeleteObject",
				      .method = "DELETE",
				      .bucket = bucket,
				      .owner = owner,
				      .key = key };
	int r = simple(a, &q, NULL, e);

	return r == -ENOENT ? 0 : r;
}

/* --- emptying --- */

struct doomed {
	struct buf xml;
	unsigned len;
};

static int add_part(struct buf *b, const char *name, const char *value)
{
	int r = buf_addf(b, "<%s>", name);

	if (r == 0)
		r = xml_escape(b, value);
	return r < 0 ? r : buf_addf(b, "</%s>", name);
}

static int on_version(void *arg, const cJSON *c)
{
	struct doomed *d = arg;
	const char *key = xml_text(c, "Key"), *id = xml_text(c, "VersionId");
	int r;

	if (!key || d->len == DELETE_MAX)
		return key ? 0 : -EBADMSG;
	d->len++;
	r = buf_adds(&d->xml, "<Object>");
	if (r == 0)
		r = add_part(&d->xml, "Key", key);
	if (r == 0 && id && *id) /* "null" too, or a bucket with versions gets a marker */
		r = add_part(&d->xml, "VersionId", id);
	return r < 0 ? r : buf_adds(&d->xml, "</Object>");
}

static int delete_all_of(struct aws *a, const char *bucket, const char *owner, struct doomed *d,
			 struct err *e)
{
	struct s3_request q = { .what = "DeleteObjects",
				.method = "POST",
				.bucket = bucket,
				.owner = owner,
				.query = "delete",
				.type = "application/xml" };
	struct aws_answer w;
	const char *code, *key;
	int r = buf_adds(&d->xml, "<Quiet>true</Quiet></Delete>");

	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "DeleteObjects");
	q.body = d->xml.p;
	q.len = d->xml.len;
	r = s3_call(a, &q, &w, e);
	code = xml_text(w.json, "DeleteResult/Error/Code");
	key = xml_text(w.json, "DeleteResult/Error/Key");
	if (r == 0 && code) /* a failure within a success */
		r = err_set(e, ERR_DENIED, 0, "DeleteObjects: %.100s: %.200s", code,
			    key ? key : "of some object");
	aws_answer_done(&w);
	return r;
}

/* The first versions and delete markers there are. 1: there may be more. */
static int empty_some(struct aws *a, const char *bucket, const char *owner, struct err *e)
{
	const struct s3_request q = { .what = "ListObjectVersions",
				      .method = "GET",
				      .bucket = bucket,
				      .owner = owner,
				      .query = "versions" };
	struct doomed d = { .len = 0 };
	struct aws_answer w;
	const cJSON *list;
	int r = s3_call(a, &q, &w, e);

	list = xml_at(w.json, "ListVersionsResult");
	buf_init(&d.xml, REQUEST_MAX);
	if (r == 0) {
		r = buf_adds(&d.xml, "<Delete " S3_XMLNS ">");
		if (r == 0)
			r = xml_each(list, "Version", on_version, &d);
		if (r == 0)
			r = xml_each(list, "DeleteMarker", on_version, &d);
		if (r < 0)
			r = err_set(e, ERR_INTERNAL, -r, "ListObjectVersions");
	}
	if (r == 0 && d.len) {
		r = delete_all_of(a, bucket, owner, &d, e);
		r = r == 0 ? 1 : r;
	}
	buf_done(&d.xml);
	aws_answer_done(&w);
	return r;
}

struct uploads {
	struct aws *a;
	const char *bucket, *owner;
	struct err *e;
};

static int on_upload(void *arg, const cJSON *c)
{
	const struct uploads *u = arg;
	const char *key = xml_text(c, "Key"), *id = xml_text(c, "UploadId");
	AUTO_BUF query;
	struct s3_request q = { .what = "AbortMultipartUpload",
				.method = "DELETE",
				.bucket = u->bucket,
				.owner = u->owner,
				.key = key };
	int r;

	buf_init(&query, 4096);
	r = key && id ? buf_adds(&query, "uploadId=") : -EBADMSG;
	if (r == 0)
		r = sigv4_encode(&query, id, strlen(id), "");
	if (r < 0)
		return err_set(u->e, ERR_INTERNAL, -r, "ListMultipartUploads");
	q.query = query.p;
	r = simple(u->a, &q, NULL, u->e);
	return r == -ENOENT ? 0 : r;
}

/* 1: there are more. */
static int end_uploads(struct aws *a, const char *bucket, const char *owner, struct err *e)
{
	const struct s3_request q = { .what = "ListMultipartUploads",
				      .method = "GET",
				      .bucket = bucket,
				      .owner = owner,
				      .query = "uploads" };
	struct uploads u = { a, bucket, owner, e };
	struct aws_answer w;
	const cJSON *list;
	const char *more;
	int r = s3_call(a, &q, &w, e);

	list = xml_at(w.json, "ListMultipartUploadsResult");
	if (r == 0)
		r = xml_each(list, "Upload", on_upload, &u);
	more = xml_text(list, "IsTruncated");
	if (r == 0 && more && strcmp(more, "true") == 0)
		r = 1;
	aws_answer_done(&w);
	return r;
}

/* STEP until there is no more of it. */
static int repeat(int (*step)(struct aws *a, const char *bucket, const char *owner, struct err *e),
		  struct aws *a, const char *bucket, const char *owner, struct err *e)
{
	int r = 1;

	for (unsigned n = 0; r == 1 && n < ROUNDS_MAX; n++)
		r = step(a, bucket, owner, e);
	return r == 1 ? err_set(e, ERR_TOO_BIG, 0, "emptying the bucket %s has no end", bucket) : r;
}

int s3_delete_bucket(struct aws *a, const char *bucket, const char *owner, struct err *e)
{
	const struct s3_request q = {
		.what = "DeleteBucket", .method = "DELETE", .bucket = bucket, .owner = owner
	};
	int r = repeat(end_uploads, a, bucket, owner, e);

	if (r == 0)
		r = repeat(empty_some, a, bucket, owner, e);
	if (r == 0)
		r = simple(a, &q, NULL, e);
	return r == -ENOENT ? 0 : r;
}
