/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/imageops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/aws/ops.h"
#include "host/aws/poll.h"
#include "host/aws/query.h"
#include "host/aws/vm.h"
#include "host/state/state.h"
#include "lib/str.h"

/* Images on AWS as commands see them: by name, or by their ARN. */

static int no_memory(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, ENOMEM, "%s", what);
}

int image_place_open(struct image_place *ret, struct err *e)
{
	struct aws_identity me;
	int r = aws_session(NULL, &ret->a, e);

	if (r == 0)
		r = aws_region(ret->a, &ret->region, e);
	if (r == 0)
		r = query_identity(ret->a, &me, e);
	if (r < 0)
		return r;
	memcpy(ret->account, me.account, sizeof(ret->account));
	memcpy(ret->partition, me.partition, sizeof(ret->partition));
	return 0;
}

int image_arn_of(const struct image_place *w, const char *name, size_t n,
		 char ret[static IMAGE_ARN_MAX], struct err *e)
{
	if (!arn_is_image_name(name, n))
		return err_set(e, ERR_INVALID, 0, "'%.100s' is neither an image's ARN nor its name",
			       name);
	if (str_format(ret, IMAGE_ARN_MAX, "arn:%s:lambda:%s:%s:microvm-image:%.*s", w->partition,
		       w->region, w->account, (int)n, name) < 0)
		return err_set(e, ERR_INTERNAL, ENAMETOOLONG, "the image's ARN");
	return 0;
}

/* --- ls --- */

struct each {
	int (*fn)(void *arg, const struct image_info *i);
	void *arg;
	bool managed;
};

static void time_text(const cJSON *at, char *ret, size_t size)
{
	time_t s = cJSON_IsNumber(at) && at->valuedouble > 0 && at->valuedouble < 1e11
			   ? (time_t)at->valuedouble
			   : 0;
	struct tm tm;

	if (!s || !gmtime_r(&s, &tm) || !strftime(ret, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		ret[0] = '\0';
}

static int on_image(void *arg, const cJSON *item)
{
	static const char *const nobody[] = { NULL };
	const struct each *each = arg;
	const char *arn = vm_text(item, "imageArn"), *name = vm_text(item, "name"),
		   *state = vm_text(item, "state");
	char created[32];
	struct image_info i = { .sha256 = "",
				.source = "",
				.path = "",
				.broken = "",
				.created = created,
				.used_by = nobody,
				.arn = arn,
				.state = state ? state : "",
				.installed = each->managed,
				.newest = true };

	if (!arn)
		return 0;
	i.name = name ? name : strrchr(arn, ':') ? strrchr(arn, ':') + 1 : arn;
	i.version = image_major(vm_text(item, "latestActiveImageVersion"));
	time_text(jsn_get(item, "createdAt"), created, sizeof(created));
	return each->fn(each->arg, &i);
}

static int list_all(enum aws_op_id op, struct each *each, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();
	struct aws *a;
	int r = aws_session(NULL, &a, e);

	if (r < 0)
		return r;
	return p ? ops_each(a, op, p, on_image, each, e) : no_memory(e, "the images");
}

static int list(int (*fn)(void *arg, const struct image_info *i), void *arg, struct err *e)
{
	struct each each = { fn, arg, false };

	return list_all(OP_LIST_MICROVM_IMAGES, &each, e);
}

static int list_managed(int (*fn)(void *arg, const struct image_info *i), void *arg, struct err *e)
{
	struct each each = { fn, arg, true };

	return list_all(OP_LIST_MANAGED_MICROVM_IMAGES, &each, e);
}

/* --- one image --- */

struct chosen {
	struct aws *a; /* borrowed */
	char arn[IMAGE_ARN_MAX];
	char version[IMAGE_VERSION_MAX]; /* "" = all of it */
};

static int choose(const char *image, struct chosen *ret, struct err *e)
{
	const char *colon;
	struct image_place at = { .a = NULL };
	struct image_arn parts;
	uint64_t v;
	int r;

	*ret = (struct chosen){ .a = NULL };
	if (str_starts(image, "arn:")) {
		r = arn_image(image, &parts, e);
		if (r == 0)
			r = aws_session(parts.region, &ret->a, e);
		return r < 0 ? r : str_format(ret->arn, sizeof(ret->arn), "%s", image);
	}
	colon = strchr(image, ':');
	if (colon && str_to_u64(colon + 1, 1, UINT32_MAX, &v) < 0)
		return err_set(e, ERR_INVALID, 0, "'%.100s' is neither NAME nor NAME:VERSION",
			       image);
	if (colon)
		ignore_result(str_format(ret->version, sizeof(ret->version), "%llu.0",
					 (unsigned long long)v)); /* fits */
	r = image_place_open(&at, e);
	ret->a = at.a;
	return r < 0 ? r
		     : image_arn_of(&at, image, colon ? (size_t)(colon - image) : strlen(image),
				    ret->arn, e);
}

static cJSON *params(const struct chosen *c, const char *version)
{
	cJSON *p = cJSON_CreateObject();

	if (p && jsn_add_str(p, "imageIdentifier", c->arn) &&
	    (!version || !*version || jsn_add_str(p, "imageVersion", version)))
		return p;
	cJSON_Delete(p);
	return NULL;
}

/* The versions, or the builds of one, as a member of DOC. */
static int add_list(const struct chosen *c, enum aws_op_id op, const char *name, cJSON *doc,
		    struct err *e)
{
	AUTO_JSN *p = params(c, c->version);
	cJSON *all = cJSON_AddArrayToObject(doc, name);

	return ops_list(c->a, op, p, all, e);
}

static int inspect(const char *image, cJSON **ret, struct err *e)
{
	struct chosen c;
	struct aws_answer a = { .attempts = 0 };
	AUTO_JSN *p = NULL;
	int r = choose(image, &c, e);

	if (r < 0)
		return r;
	p = params(&c, c.version);
	r = p ? ops_call(c.a, c.version[0] ? OP_GET_MICROVM_IMAGE_VERSION : OP_GET_MICROVM_IMAGE, p,
			 &a, e)
	      : no_memory(e, "the image");
	if (r == 0 && !a.json)
		r = err_set(e, ERR_INTERNAL, EBADMSG, "AWS says nothing of the image");
	if (r == 0)
		r = c.version[0]
			    ? add_list(&c, OP_LIST_MICROVM_IMAGE_BUILDS, "builds", a.json, e)
			    : add_list(&c, OP_LIST_MICROVM_IMAGE_VERSIONS, "versions", a.json, e);
	*ret = r == 0 ? a.json : NULL;
	if (r == 0)
		a.json = NULL;
	aws_answer_done(&a);
	return r;
}

/* --- rm --- */

struct deleting {
	struct aws *a;
	const char *arn, *version; /* NULL = all of it */
};

static int ask(void *arg, struct err *e)
{
	const struct deleting *d = arg;

	return image_ask_to_delete(d->a, d->arn, d->version, e);
}

static int is_gone(void *arg, struct err *e)
{
	const struct deleting *d = arg;

	return image_is_gone(d->a, d->arn, e);
}

int image_delete(struct aws *a, const char *arn, struct err *e)
{
	struct deleting d = { a, arn, NULL };
	int r = aws_poll(a, ask, &d, IMAGE_GONE_NS, "the image may be deleted", e);

	return r < 0 ? r : aws_poll(a, is_gone, &d, IMAGE_GONE_NS, "the image is gone", e);
}

int image_delete_version(struct aws *a, const char *arn, const char *version, int64_t limit_ns,
			 struct err *e)
{
	struct deleting d = { a, arn, version };

	return aws_poll(a, ask, &d, limit_ns, "the version may be deleted", e);
}

struct users {
	const struct chosen *c;
	bool force;
	struct image_users who;
	struct err *e;
};

struct name {
	const char *id;
	char *ret;
};

static int on_record(void *arg, const struct state_record *r)
{
	const struct name *n = arg;

	if (strcmp(r->microvm_id, n->id) != 0)
		return 0;
	ignore_result(str_format(n->ret, SANDBOX_NAME_MAX + 1, "%s", r->name)); /* fits */
	return 1;
}

/* By the name that asb rm wants; its id when there is none. */
static void add_user(struct image_users *who, const char *id)
{
	char name[SANDBOX_NAME_MAX + 1];
	struct name n = { id, name };
	const bool told = who->len < IMAGE_USERS_TOLD; /* the others are only counted */

	image_users_add(who, told && state_each(on_record, &n, NULL) == 1 ? name : id);
}

static int on_vm(void *arg, const cJSON *vm)
{
	struct users *u = arg;
	struct sandbox_info i;

	vm_read(vm, &i);
	if (i.state == SANDBOX_TERMINATED ||
	    (u->c->version[0] && !(vm_text(vm, "imageVersion") &&
				   strcmp(vm_text(vm, "imageVersion"), u->c->version) == 0)))
		return 0;
	if (!u->force)
		add_user(&u->who, i.id);
	if (!u->force || i.state == SANDBOX_TERMINATING)
		return 0;
	return vm_do(u->c->a, OP_TERMINATE_MICROVM, i.id, u->e);
}

/* Whoever lives of it: told, or ended with FORCE. */
static int look_at_users(const struct chosen *c, bool force, struct users *ret, struct err *e)
{
	AUTO_JSN *p = params(c, NULL);
	int r;

	*ret = (struct users){ .c = c, .force = force, .e = e };
	r = p ? ops_each(c->a, OP_LIST_MICROVMS, p, on_vm, ret, e) : no_memory(e, "ListMicrovms");
	return r == -ENOENT ? 0 : r;
}

static int remove_image(const char *image, bool force, void (*fn)(void *arg, const char *image),
			void *arg, struct err *e)
{
	struct image_state i;
	struct users u;
	struct chosen c;
	int r = choose(image, &c, e);

	if (r == 0)
		r = image_get(c.a, c.arn, &i, e);
	if (r < 0)
		return r;
	r = look_at_users(&c, force, &u, e);
	if (r < 0)
		return r;
	if (u.who.len) {
		(void)err_set(e, ERR_CONFLICT, 0, "sandboxes of %.100s live: %s", image,
			      image_users_text(&u.who));
		return -EBUSY;
	}
	r = c.version[0] ? image_delete_version(c.a, c.arn, c.version, IMAGE_GONE_NS, e)
			 : image_delete(c.a, c.arn, e);
	if (r == 0)
		fn(arg, image);
	return r;
}

const struct image_ops imageops_aws = {
	.build = imagebuild_aws,
	.list = list,
	.list_managed = list_managed,
	.inspect = inspect,
	.remove = remove_image,
};
