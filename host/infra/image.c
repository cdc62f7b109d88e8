/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/ops.h"
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

static const char *text(const cJSON *o, const char *name)
{
	return cJSON_GetStringValue(jsn_get(o, name));
}

/* --- the request --- */

struct newest {
	char arn[STACK_ARN_MAX];
	double created;
};

static int on_managed(void *arg, const cJSON *item)
{
	struct newest *n = arg;
	const cJSON *at = jsn_get(item, "createdAt");
	const char *arn = text(item, "imageArn");

	if (!arn || (n->arn[0] && cJSON_GetNumberValue(at) <= n->created))
		return 0;
	n->created = cJSON_IsNumber(at) ? at->valuedouble : 0;
	return str_format(n->arn, sizeof(n->arn), "%s", arn);
}

static int base_image(struct stack *s, char ret[STACK_ARN_MAX], struct err *e)
{
	AUTO_JSN *params = cJSON_CreateObject();
	struct newest n = { .created = 0 };
	int r;

	if (*s->c->text[INFRA_BASE_ARN])
		return str_format(ret, STACK_ARN_MAX, "%s", s->c->text[INFRA_BASE_ARN]);
	r = params ? ops_each(s->a, OP_LIST_MANAGED_MICROVM_IMAGES, params, on_managed, &n, e)
		   : no_memory(e, "ListManagedMicrovmImages");
	if (r < 0)
		return r;
	if (!n.arn[0])
		return err_set(
			e, ERR_NOT_FOUND, 0,
			"AWS manages no base image in %s: is the service there? (image.base_image_arn)",
			s->place.region);
	return str_format(ret, STACK_ARN_MAX, "%s", n.arn);
}

/* Hook times: the guest drains for up to 8 s within the 10 of suspend. */
static const char hooks[] =
	"{\"port\":9000,\"microvmImageHooks\":{\"ready\":\"ENABLED\",\"readyTimeoutInSeconds\":60,"
	"\"validate\":\"ENABLED\",\"validateTimeoutInSeconds\":15},\"microvmHooks\":{\"run\":\"ENABLED\","
	"\"runTimeoutInSeconds\":5,\"resume\":\"ENABLED\",\"resumeTimeoutInSeconds\":5,\"suspend\":\"ENABLED\","
	"\"suspendTimeoutInSeconds\":10,\"terminate\":\"ENABLED\",\"terminateTimeoutInSeconds\":10}}";

static bool add_log_group(const struct stack *s, cJSON *params)
{
	cJSON *l = cJSON_AddObjectToObject(params, "logging");
	char group[160];

	l = l ? cJSON_AddObjectToObject(l, "cloudWatch") : NULL;
	return l &&
	       str_format(group, sizeof(group), "/aws/lambda-microvms/%s",
			  s->c->text[INFRA_IMAGE_NAME]) == 0 &&
	       jsn_add_str(l, "logGroup", group);
}

static int make_params(struct stack *s, bool update, cJSON **ret, struct err *e)
{
	cJSON *p = cJSON_CreateObject(), *o;
	char base[STACK_ARN_MAX], uri[300];
	int r = base_image(s, base, e);
	bool good;

	if (r == 0)
		r = str_format(uri, sizeof(uri), "s3://%s/%s", s->bucket, s->object);
	if (r < 0) {
		cJSON_Delete(p);
		return r;
	}
	good = p &&
	       (update ? jsn_add_str(p, "imageIdentifier", s->image_arn)
		       : jsn_add_str(p, "name", s->c->text[INFRA_IMAGE_NAME])) &&
	       jsn_add_str(p, "baseImageArn", base) &&
	       (!*s->c->text[INFRA_BASE_VERSION] ||
		jsn_add_str(p, "baseImageVersion", s->c->text[INFRA_BASE_VERSION])) &&
	       jsn_add_str(p, "buildRoleArn", s->build_role_arn) && add_log_group(s, p) &&
	       cJSON_AddItemToObject(p, "hooks", cJSON_Parse(hooks));
	o = good ? cJSON_AddObjectToObject(p, "codeArtifact") : NULL;
	good = o && jsn_add_str(o, "uri", uri);
	o = good && !update ? cJSON_AddObjectToObject(p, "tags") : NULL;
	if (!good || (!update && (!o || !jsn_add_str(o, STACK_TAG, s->key)))) {
		cJSON_Delete(p);
		return no_memory(e, "the image's parameters");
	}
	*ret = p;
	return 0;
}

/* --- making --- */

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

static int get_image(struct stack *s, struct aws_answer *ret, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();

	*ret = (struct aws_answer){ .attempts = 0 };
	if (!p || !jsn_add_str(p, "imageIdentifier", s->image_arn))
		return no_memory(e, "GetMicrovmImage");
	return ops_call(s->a, OP_GET_MICROVM_IMAGE, p, ret, e);
}

static int on_build(void *arg, const cJSON *item)
{
	const char *why = text(item, "stateReason"), *state = text(item, "state");

	if (!why || !state || strcmp(state, "FAILED") != 0)
		return 0;
	return str_format(arg, 200, "%.190s", why) < 0 ? 0 : 1;
}

/* Only a build tells why it has failed. */
static void failure(struct stack *s, const char *version, char ret[200])
{
	AUTO_JSN *p = cJSON_CreateObject();

	ret[0] = '\0';
	if (version && p && jsn_add_str(p, "imageIdentifier", s->image_arn) &&
	    jsn_add_str(p, "imageVersion", version))
		ignore_result(ops_each(s->a, OP_LIST_MICROVM_IMAGE_BUILDS, p, on_build, ret, NULL));
}

static int built(struct stack *s, void *arg, struct err *e)
{
	struct aws_answer w;
	const char *state, *version;
	char why[200];
	int r = get_image(s, &w, e);

	(void)arg;
	state = text(w.json, "state");
	if (r == 0 && state && strcmp(state, "CREATED") != 0 && strcmp(state, "UPDATED") != 0) {
		r = strstr(state, "FAILED") ? -EIO : 0;
		if (r < 0) {
			failure(s, text(w.json, "latestFailedImageVersion"), why);
			r = err_set(e, ERR_UNAVAILABLE, 0, "the build of image %s has failed: %s",
				    s->c->text[INFRA_IMAGE_NAME], why[0] ? why : state);
		}
	} else if (r == 0) {
		version = text(w.json, "latestActiveImageVersion");
		r = str_format(s->version, sizeof(s->version), "%s", version ? version : "");
		r = r < 0 ? r : 1;
	}
	aws_answer_done(&w);
	return r;
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
	const char *state = text(vm, "state");

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
	const char *id = text(vm, "microvmId"), *state = text(vm, "state");
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

/* Refused while a build runs, and for a moment after the last sandbox has ended. */
static int ask_to_delete(struct stack *s, void *arg, struct err *e)
{
	AUTO_JSN *p = by_image(s);
	struct aws_answer w = { .attempts = 0 };
	int r = p ? ops_call(s->a, OP_DELETE_MICROVM_IMAGE, p, &w, e)
		  : no_memory(e, "DeleteMicrovmImage");

	(void)arg;
	aws_answer_done(&w);
	if (r == 0 || r == -ENOENT)
		return 1;
	if (r == -EBUSY || (r == -EINVAL && (strstr(e->msg, "current state") ||
					     strstr(e->msg, "running microvms"))))
		return 0;
	return r;
}

static int image_gone(struct stack *s, void *arg, struct err *e)
{
	struct aws_answer w;
	const char *state;
	int r = get_image(s, &w, e);

	(void)arg;
	state = text(w.json, "state");
	if (r == 0 && state && strcmp(state, "DELETE_FAILED") == 0)
		r = err_set(e, ERR_UNAVAILABLE, 0, "deleting the image has failed");
	else if (r == 0 && state && strcmp(state, "DELETED") == 0)
		r = 1;
	aws_answer_done(&w);
	return r == -ENOENT ? 1 : r;
}

int stack_image_delete(struct stack *s, bool force, struct err *e)
{
	int r = str_format(s->image_arn, sizeof(s->image_arn), "%s", s->rec[RES_IMAGE].id);

	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "the image's ARN");
	if (force)
		r = end_all(s, e);
	if (r == 0)
		r = stack_poll(s, ask_to_delete, NULL, STACK_GONE_NS, "the image may be deleted",
			       e);
	return r < 0 ? r : stack_poll(s, image_gone, NULL, STACK_GONE_NS, "the image is gone", e);
}
