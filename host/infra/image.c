/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/imageops.h"
#include "host/aws/ops.h"
#include "host/aws/vm.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/*
 * The MicroVM image. A new one is CreateMicrovmImage, a change of it UpdateMicrovmImage: names are unique, and each of the two
 * makes a version by a build of minutes. attrs.building holds the hash of what a build was started from until it is over; then
 * it becomes attrs.sha256.
 */

static int no_memory(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, ENOMEM, "%s", what);
}

/* --- making --- */

static int make_params(struct stack *s, bool update, cJSON **ret, struct err *e)
{
	const struct image_recipe i = { .name = s->c->text[INFRA_IMAGE_NAME],
					.arn = update ? s->image_arn : NULL,
					.bucket = s->bucket,
					.object = s->guest.key,
					.build_role = s->build_role_arn,
					.base = s->c->text[INFRA_BASE_ARN],
					.base_version = s->c->text[INFRA_BASE_VERSION],
					.tag = STACK_TAG,
					.tag_value = s->key };

	return image_params(s->a, &i, ret, e);
}

/* Somebody was quicker, or the first of two attempts was: R of the creation, or 0 when there is one now, which is recorded as whose it is. */
static int exists(struct stack *s, int r, struct err *e)
{
	int ours = strstr(e->msg, "already exists") ? stack_tagged(s, s->image_arn, e) : r;

	if (ours)
		return ours < 0 ? ours : 0;
	stack_disown(s, RES_IMAGE);
	return stack_attr(s, RES_IMAGE, "building", "") < 0 ? no_memory(e, "recording the image")
							    : 0;
}

int stack_image_make(struct stack *s, bool update, struct err *e)
{
	AUTO_JSN *params = NULL;
	struct aws_answer w = { .attempts = 0 };
	bool managed = !update || stack_ours(s, RES_IMAGE);
	int r = make_params(s, update, &params, e);

	if (r == 0 && !update) {
		if (stack_attr(s, RES_IMAGE, "building", s->sha) < 0)
			return no_memory(e, "recording the image");
		r = stack_record(s, RES_IMAGE, s->image_arn, true, true, e);
	}
	if (r == 0)
		r = stack_call_with_role(s,
					 update ? OP_UPDATE_MICROVM_IMAGE : OP_CREATE_MICROVM_IMAGE,
					 params, &w, e);
	aws_answer_done(&w);
	if (r == 0 && stack_attr(s, RES_IMAGE, "building", s->sha) < 0)
		r = no_memory(e, "recording the image");
	if (r == -EINVAL && !update) {
		r = exists(s, r, e);
		managed = stack_ours(s, RES_IMAGE);
	}
	if (r == 0)
		r = stack_record(s, RES_IMAGE, s->image_arn, managed, managed && !update, e);
	return r < 0 ? r : stack_image_wait(s, e);
}

/* --- waiting --- */

static int built(struct stack *s, void *arg, struct err *e)
{
	struct image_state i;
	AUTO_BUF why;
	int r = image_get(s->a, s->image_arn, &i, e);

	(void)arg;
	buf_init(&why, ERR_MSG_MAX);
	if (r < 0 || i.busy)
		return r;
	if (i.failed) {
		image_reason(s->a, s->image_arn, i.failed_version, &why);
		return err_set(e, ERR_UNAVAILABLE, 0, "the build of image %s has failed: %s",
			       s->c->text[INFRA_IMAGE_NAME], why.len ? why.p : i.state);
	}
	r = str_format(s->version, sizeof(s->version), "%s", i.active_version);
	return r < 0 ? r : 1;
}

int stack_image_wait(struct stack *s, struct err *e)
{
	const char *building;
	char sha[STACK_SHA_LEN + 1];
	bool managed = stack_ours(s, RES_IMAGE);
	int r = stack_poll(s, built, NULL, STACK_BUILD_NS, "the image is built", e);

	if (r < 0)
		return r;
	building = stack_attr_of(s, RES_IMAGE, "building");
	ignore_result(str_format(sha, sizeof(sha), "%s", building)); /* ours, or cut: never equal */
	if ((*sha && (stack_attr(s, RES_IMAGE, "sha256", sha) < 0 ||
		      stack_attr(s, RES_IMAGE, "building", "") < 0)) ||
	    stack_attr(s, RES_IMAGE, "version", s->version) < 0)
		return no_memory(e, "recording the image");
	return stack_record(s, RES_IMAGE, s->image_arn, managed, false, e);
}

/* --- deleting --- */

static bool lives(const cJSON *vm)
{
	const char *state = vm_text(vm, "state");

	return !state || strcmp(state, "TERMINATED") != 0;
}

static int on_vm(void *arg, const cJSON *vm)
{
	(void)arg;
	return lives(vm);
}

static cJSON *by_image(const struct stack *s)
{
	cJSON *p = cJSON_CreateObject();

	if (p && jsn_add_str(p, "imageIdentifier", s->rec[RES_IMAGE].id))
		return p;
	cJSON_Delete(p);
	return NULL;
}

int stack_image_live(struct stack *s, struct err *e)
{
	AUTO_JSN *p = by_image(s);
	int r = p ? ops_each(s->a, OP_LIST_MICROVMS, p, on_vm, NULL, e)
		  : no_memory(e, "ListMicrovms");

	return r == -ENOENT ? 0 : r;
}

struct ending {
	struct stack *s;
	struct err *e;
};

static int end_one(void *arg, const cJSON *vm)
{
	const struct ending *n = arg;
	AUTO_JSN *p = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	const char *id = vm_text(vm, "microvmId"), *state = vm_text(vm, "state");
	int r;

	if (!lives(vm) || !id || (state && strcmp(state, "TERMINATING") == 0))
		return 0;
	if (!p || !jsn_add_str(p, "microvmIdentifier", id))
		return no_memory(n->e, "TerminateMicrovm");
	r = ops_call(n->s->a, OP_TERMINATE_MICROVM, p, &w, n->e);
	aws_answer_done(&w);
	return r == -ENOENT ? 0 : r;
}

static int all_ended(struct stack *s, void *arg, struct err *e)
{
	int r = stack_image_live(s, e);

	(void)arg;
	return r < 0 ? r : !r;
}

static int end_all(struct stack *s, struct err *e)
{
	struct ending n = { s, e };
	AUTO_JSN *p = by_image(s);
	int r = p ? ops_each(s->a, OP_LIST_MICROVMS, p, end_one, &n, e)
		  : no_memory(e, "ListMicrovms");

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r
		     : stack_poll(s, all_ended, NULL, STACK_GONE_NS, "the sandboxes have ended", e);
}

int stack_image_delete(struct stack *s, bool force, struct err *e)
{
	int r = str_format(s->image_arn, sizeof(s->image_arn), "%s", s->rec[RES_IMAGE].id);

	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "the image's ARN");
	if (force)
		r = end_all(s, e);
	return r < 0 ? r : image_delete(s->a, s->image_arn, e);
}
