/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/guestdir.h"
#include "host/aws/imageops.h"
#include "host/aws/logs.h"
#include "host/aws/ops.h"
#include "host/aws/poll.h"
#include "host/aws/s3.h"
#include "host/aws/vm.h"
#include "host/backend.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * asb image build on AWS: what can be refused here is refused; the zip is uploaded under the hash of its content, unless it is there; then
 * CreateMicrovmImage, or UpdateMicrovmImage for one that exists, and a wait for the build, which goes on at AWS when asb ends. One whose first
 * build has failed cannot get a version: it is made anew.
 */

#define BUILD_NS   (1800LL * 1000000000)
#define LOG_MAX	   8192
#define LOG_TRIES  3
#define LOG_PAUSE  1000000000LL
#define EARLIER_MS 60000 /* how much their clock may be behind */

struct building {
	const struct image_spec *s;
	const struct progress *p;
	struct image_place at;
	struct guestdir guest;
	char arn[IMAGE_ARN_MAX], base[IMAGE_ARN_MAX];
	struct image_state now;
	char version[IMAGE_VERSION_MAX]; /* the one that is made */
	int64_t began_ns, began_ms;
	struct image_built *ret;
};

static void stage(const struct building *b, const char *word)
{
	if (b->p && b->p->fn)
		b->p->fn(b->p->arg, word, (loop_now() - b->began_ns) / 1000000);
}

static void step(const struct building *b, const char *word)
{
	b->ret->step = word;
	stage(b, word);
}

/* --- what goes in --- */

static int check_spec(const struct image_spec *s, struct err *e)
{
	static const uint64_t sizes[] = { 0, 512, 1024, 2048, 4096, 8192 };
	bool good = false;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		good = good || s->memory_mib == sizes[i];
	if (!arn_is_image_name(s->name, strlen(s->name)))
		return err_set(
			e, ERR_USAGE, 0,
			"'%.80s' is no image's name on AWS: 1 to 64 letters, digits, - and _",
			s->name);
	if (!good)
		return err_set(e, ERR_USAGE, 0,
			       "the memory of an image on AWS is 512m, 1g, 2g, 4g or 8g");
	return s->bucket && s->role
		       ? 0
		       : err_set(e, ERR_USAGE, 0, "which %s is the build to use? (--%s)",
				 s->bucket ? "role" : "bucket", s->bucket ? "role" : "bucket");
}

static int pack(struct building *b, struct err *e)
{
	int r;

	step(b, "pack");
	r = guestdir_read(b->s->source, b->s->name, b->p ? b->p->cancel : NULL, &b->guest, e);
	return r < 0 || b->s->unchecked ? r : guestdir_refusal(&b->guest, e);
}

/* --- what there is --- */

static bool same_text(const cJSON *o, const char *name, const char *want)
{
	const char *s = vm_text(o, name);

	return s && strcmp(s, want) == 0;
}

static int on_base_version(void *arg, const cJSON *item)
{
	uint64_t *newest = arg, v = image_major(vm_text(item, "imageVersion"));

	*newest = v > *newest ? v : *newest;
	return 0;
}

/* Whether version DOC was made from what would be sent now. */
static int is_same(struct building *b, const cJSON *doc, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject();
	const cJSON *memory =
		jsn_get(cJSON_GetArrayItem(jsn_get(doc, "resources"), 0), "minimumMemoryInMiB");
	char uri[400];
	uint64_t base = 0;
	int r = str_format(uri, sizeof(uri), "s3://%s/%s", b->s->bucket, b->guest.key);

	if (r < 0 || !same_text(jsn_get(doc, "codeArtifact"), "uri", uri) ||
	    !same_text(doc, "buildRoleArn", b->s->role) ||
	    !same_text(doc, "baseImageArn", b->base) ||
	    (b->s->memory_mib &&
	     (!cJSON_IsNumber(memory) || memory->valuedouble != (double)b->s->memory_mib)))
		return 0;
	r = q && jsn_add_str(q, "imageIdentifier", b->base)
		    ? ops_each(b->at.a, OP_LIST_MANAGED_MICROVM_IMAGE_VERSIONS, q, on_base_version,
			       &base, e)
		    : err_set(e, ERR_INTERNAL, ENOMEM, "the base image's versions");
	return r < 0 ? r : base == image_major(vm_text(doc, "baseImageVersion"));
}

static int get_version(struct building *b, const char *version, struct aws_answer *ret,
		       struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();

	*ret = (struct aws_answer){ .attempts = 0 };
	return p && jsn_add_str(p, "imageIdentifier", b->arn) &&
			       jsn_add_str(p, "imageVersion", version)
		       ? ops_call(b->at.a, OP_GET_MICROVM_IMAGE_VERSION, p, ret, e)
		       : err_set(e, ERR_INTERNAL, ENOMEM, "GetMicrovmImageVersion");
}

/* 1: the newest version has this content. */
static int look(struct building *b, struct err *e)
{
	struct aws_answer w;
	int r = image_place_open(&b->at, e);

	if (r == 0)
		r = image_arn_of(&b->at, b->s->name, strlen(b->s->name), b->arn, e);
	if (r == 0)
		r = image_base(b->at.a, b->base, e);
	if (r < 0)
		return r;
	r = image_get(b->at.a, b->arn, &b->now, e);
	if (r == -ENOENT) {
		b->arn[0] = '\0';
		return 0;
	}
	if (r == 0 && b->now.busy)
		return err_set(e, ERR_CONFLICT, EBUSY, "the image %s is %s already", b->s->name,
			       b->now.state);
	if (r < 0 || b->s->rebuild || !b->now.active_version[0] || b->now.failed)
		return r;
	r = get_version(b, b->now.active_version, &w, e);
	if (r == 0)
		r = is_same(b, w.json, e);
	aws_answer_done(&w);
	return r;
}

/* --- making --- */

static void told(void *arg, uint64_t done, uint64_t all)
{
	char word[40];

	if (str_format(word, sizeof(word), "upload %llu of %llu MiB",
		       (unsigned long long)(done >> 20), (unsigned long long)(all >> 20)) == 0)
		stage(arg, all > S3_PART_MAX ? word : "upload");
}

static int upload(struct building *b, struct err *e)
{
	const struct s3_object o = { .bucket = b->s->bucket,
				     .owner = b->at.account,
				     .key = b->guest.key,
				     .body = b->guest.zip.p,
				     .len = b->guest.zip.len,
				     .told = told,
				     .told_arg = b };
	int r;

	step(b, "upload");
	r = s3_head_object(b->at.a, o.bucket, o.owner, o.key, e);
	/* who may not list the bucket is refused for what is not there */
	return r == -ENOENT || r == -EACCES ? s3_put_object(b->at.a, &o, e) : r;
}

static int make(struct building *b, struct err *e)
{
	struct image_recipe i = { .name = b->s->name,
				  .arn = b->arn[0] ? b->arn : NULL,
				  .bucket = b->s->bucket,
				  .object = b->guest.key,
				  .build_role = b->s->role,
				  .base = b->base,
				  .tag = IMAGE_TAG,
				  .tag_value = b->s->name,
				  .memory_mib = b->s->memory_mib };
	AUTO_JSN *params = NULL;
	struct aws_answer w = { .attempts = 0 };
	const char *version;
	int r = 0;

	step(b, "build");
	if (i.arn && strcmp(b->now.state, "CREATE_FAILED") == 0) {
		r = image_delete(b->at.a, i.arn, e);
		i.arn = NULL;
	}
	if (r == 0)
		r = image_params(b->at.a, &i, &params, e);
	if (r == 0)
		r = ops_call(b->at.a, i.arn ? OP_UPDATE_MICROVM_IMAGE : OP_CREATE_MICROVM_IMAGE,
			     params, &w, e);
	version = vm_text(w.json, "imageVersion");
	if (r == 0)
		r = str_format(b->version, sizeof(b->version), "%s", version ? version : "");
	if (r == 0 && !b->arn[0])
		r = image_arn_of(&b->at, b->s->name, strlen(b->s->name), b->arn, e);
	aws_answer_done(&w);
	return r < 0 && e && !e->code ? err_set(e, ERR_INTERNAL, -r, "the image's version") : r;
}

/* --- waiting --- */

struct tail {
	struct buf text;
	char of[IMAGE_VERSION_MAX + 2]; /* "[2.0]" */
};

/* The container build writes to a stream of version 0.0; other sandboxes of the image may be writing, too. */
static int on_line(void *arg, const struct logs_event *ev)
{
	struct tail *t = arg;
	size_t n = strlen(ev->message);
	const char *p = ev->message;

	if (!strstr(ev->stream, "[0.0]") && !strstr(ev->stream, t->of))
		return 0;
	if (n > LOG_MAX / 2) {
		p += n - LOG_MAX / 2;
		n = LOG_MAX / 2;
	}
	while (t->text.len && t->text.len + n + 1 > LOG_MAX) {
		const char *nl = memchr(t->text.p, '\n', t->text.len);

		buf_drop(&t->text, nl ? (size_t)(nl - t->text.p) + 1 : t->text.len);
	}
	ignore_result(buf_add(&t->text, p, n)); /* fits */
	if (!n || p[n - 1] != '\n')
		ignore_result(buf_adds(&t->text, "\n"));
	return 0;
}

/* What the build has written last. It may be some seconds late, and the build's role may not have been allowed to write it. */
static void read_log(struct building *b)
{
	char group[128];
	const struct logs_query q = { .group = group, .since_ms = b->began_ms };
	struct tail t;
	struct err why = ERR_INIT;
	int r;

	buf_init(&t.text, LOG_MAX + 1);
	ignore_result(str_format(t.of, sizeof(t.of), "[%s]", b->version));	      /* fits */
	ignore_result(str_format(group, sizeof(group), LOGS_GROUP "%s", b->s->name)); /* fits */
	for (int n = 0; n < LOG_TRIES && !t.text.len; n++) {
		if (n && fetch_sleep(b->at.a->fetch, LOG_PAUSE) < 0)
			break;
		why = (struct err)ERR_INIT;
		r = logs_search(b->at.a, &q, on_line, &t, &why);
		if (r < 0 && r != -ENOENT)
			break;
	}
	if (!t.text.len)
		ignore_result(buf_addf(&t.text, "the build has left no log in %s%s%.300s\n", group,
				       why.code ? ": " : "", why.msg));
	b->ret->log = buf_take(&t.text);
	buf_done(&t.text);
}

static int is_built(void *arg, struct err *e)
{
	struct building *b = arg;
	int r = image_get(b->at.a, b->arn, &b->now, e);

	stage(b, "build");
	return r == -ENOENT ? 0 : r < 0 ? r : !b->now.busy; /* it may not be shown yet */
}

/* An image is shown as it was before for a moment; its version is not. */
static int is_over(void *arg, struct err *e)
{
	struct building *b = arg;
	struct aws_answer w;
	const char *state;
	int r = get_version(b, b->version, &w, e);

	state = vm_text(w.json, "state");
	if (r == -ENOENT)
		r = 0;
	else if (r == 0 && state &&
		 (strcmp(state, "PENDING") == 0 || strcmp(state, "IN_PROGRESS") == 0))
		r = 0;
	else if (r == 0)
		r = 1;
	b->now.failed = state && strcmp(state, "SUCCESSFUL") != 0;
	aws_answer_done(&w);
	stage(b, "build");
	return r;
}

static int wait_for(struct building *b, struct err *e)
{
	int64_t limit = b->s->start_ns ? b->s->start_ns : BUILD_NS;
	AUTO_BUF why;
	bool failed;
	int r = aws_poll(b->at.a, is_over, b, limit, "the image is built", e);

	buf_init(&why, ERR_MSG_MAX);
	failed = b->now.failed;
	if (r == 0)
		r = aws_poll(b->at.a, is_built, b, limit, "the image is ready", e);
	if (r < 0 || !failed)
		return r;
	image_reason(b->at.a, b->arn, b->version, &why);
	read_log(b);
	return err_set(e, ERR_UNAVAILABLE, 0, "%s:%llu: %s", b->s->name,
		       (unsigned long long)image_major(b->version),
		       why.len ? why.p : "AWS does not say why the build has failed");
}

/* --- all --- */

static int run(struct building *b, struct err *e)
{
	const char *version = b->now.active_version;
	int r = pack(b, e);

	if (r == 0)
		r = look(b, e);
	if (r == 1) {
		b->ret->unchanged = true;
		r = 0;
	} else if (r == 0) {
		version = b->version;
		if (b->s->warn && b->guest.note.code && !b->s->unchecked)
			b->s->warn(b->guest.note.msg);
		r = upload(b, e);
		if (r == 0)
			r = make(b, e);
		if (r == 0)
			r = wait_for(b, e);
	}
	return r < 0 ? r
		     : str_format(b->ret->image, sizeof(b->ret->image), "%s:%llu", b->s->name,
				  (unsigned long long)image_major(version));
}

int imagebuild_aws(const struct image_spec *s, const struct progress *p, struct image_built *ret,
		   struct err *e)
{
	struct building b = { .s = s, .p = p, .ret = ret, .began_ns = loop_now() };
	int r;

	*ret = (struct image_built){ .step = NULL };
	b.began_ms = aws_now_s() * 1000 - EARLIER_MS;
	r = check_spec(s, e);
	if (r == 0)
		r = aws_session(NULL, &b.at.a, e);
	if (r == 0) {
		fetch_cancel(b.at.a->fetch, p ? p->cancel : NULL);
		r = run(&b, e);
		fetch_cancel(b.at.a->fetch, NULL);
	}
	guestdir_done(&b.guest);
	return r;
}
