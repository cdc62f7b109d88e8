/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/artefact.h"
#include "host/aws/imageops.h"
#include "host/aws/ops.h"
#include "host/aws/s3.h"
#include "host/aws/vm.h"
#include "host/backend.h"
#include "host/state/state.h"
#include "lib/str.h"

/*
 * asb image prune on AWS. Of an image with our tag the versions before the active one go, but for those from which a MicroVM lives, and
 * the zips that nothing but these versions was made from. A version that has failed after the active one stays: inspect tells why it did.
 * An image that is being changed is left alone, and so is one that a create is about to start from: AWS does not list that yet.
 */

#define ENDING_NS \
	(60LL *   \
	 1000000000) /* for a sandbox that is ending; one that has just begun keeps its version */

struct pruning {
	struct image_place at;
	unsigned flags;
	prune_fn *fn;
	void *arg;
};

/* One image; the trees are what AWS says. */
struct pruned {
	const char *arn, *name, *active;
	cJSON *versions, *vms;
	cJSON *gone; /* versions that have gone, or would */
};

/* --- lists --- */

/* All there is of OP, of the image ARN when there is one; owned. */
static int list_of(struct aws *a, enum aws_op_id op, const char *arn, cJSON **ret, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();
	int r = !p || (arn && !jsn_add_str(p, "imageIdentifier", arn)) ? -ENOMEM : 0;

	*ret = cJSON_CreateArray();
	return r < 0 ? err_set(e, ERR_INTERNAL, ENOMEM, "a list of AWS")
		     : ops_list(a, op, p, *ret, e);
}

/* --- what may go --- */

static bool text_is(const cJSON *o, const char *name, const char *want)
{
	const char *s = vm_text(o, name);

	return s && strcmp(s, want) == 0;
}

static bool is_used(const struct pruned *p, const char *version)
{
	const cJSON *vm;

	cJSON_ArrayForEach(vm, p->vms) if (!text_is(vm, "state", "TERMINATED") &&
					   text_is(vm, "imageVersion", version)) return true;
	return false;
}

static bool may_go(const struct pruned *p, const cJSON *version)
{
	const char *v = vm_text(version, "imageVersion"), *state = vm_text(version, "state");

	return v && state && image_major(v) < image_major(p->active) &&
	       (strcmp(state, "SUCCESSFUL") == 0 || strcmp(state, "FAILED") == 0 ||
		strcmp(state, "DELETE_FAILED") == 0) &&
	       !is_used(p, v);
}

/* 1: a create that runs now may be about to start from it. */
static int on_record(void *arg, const struct state_record *r)
{
	const struct pruned *p = arg;
	const char *image = r->image_arn ? r->image_arn : "";
	size_t n = strlen(p->name);

	if (backend_of_id(r->microvm_id) != &backend_aws || backend_is_id(r->microvm_id))
		return 0;
	return strcmp(image, p->arn) == 0 ||
	       (strncmp(image, p->name, n) == 0 && (image[n] == '\0' || image[n] == ':'));
}

/* --- versions --- */

static int remove_version(const struct pruning *u, struct pruned *p, const cJSON *version,
			  struct err *e)
{
	const char *v = vm_text(version, "imageVersion");
	char name[IMAGE_REF_MAX + 1];
	int r = 0;

	if (!(u->flags & PRUNE_DRY))
		r = image_delete_version(u->at.a, p->arn, v, ENDING_NS, e);
	if (r == 0)
		r = ops_keep(p->gone, version);
	if (r == 0)
		r = str_format(name, sizeof(name), "%s:%llu", p->name,
			       (unsigned long long)image_major(v));
	if (r < 0)
		return e && e->code ? err_wrap(e, "%.64s:%.20s", p->name, v)
				    : err_set(e, ERR_INTERNAL, -r, "the versions that go");
	u->fn(u->arg, "image", name, PRUNE_NO_SIZE);
	return 0;
}

/* --- artefacts --- */

static const char *uri_of(const cJSON *version)
{
	return vm_text(jsn_get(version, "codeArtifact"), "uri");
}

static bool has(const cJSON *versions, const char *version)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, versions) if (text_is(v, "imageVersion", version)) return true;
	return false;
}

/* Whether a version that stays was made from it, or one before VERSION that has gone, too. */
static bool is_shared(const struct pruned *p, const cJSON *version)
{
	const char *uri = uri_of(version);
	const cJSON *v;

	cJSON_ArrayForEach(v, p->versions)
	{
		const char *id = vm_text(v, "imageVersion"), *other = uri_of(v);

		if (other && strcmp(other, uri) == 0 && id && !has(p->gone, id))
			return true;
	}
	cJSON_ArrayForEach(v, p->gone)
	{
		const char *other = uri_of(v);

		if (v == version)
			break;
		if (other && strcmp(other, uri) == 0)
			return true;
	}
	return false;
}

/* "s3://BUCKET/KEY", as asb image build calls them: *RET_KEY points into URI. */
static bool is_ours(const struct pruned *p, const char *uri, char *bucket, size_t size,
		    const char **ret_key)
{
	const char *slash = str_starts(uri, "s3://") ? strchr(uri + 5, '/') : NULL;

	if (!slash || str_format(bucket, size, "%.*s", (int)(slash - uri - 5), uri + 5) < 0)
		return false;
	*ret_key = slash + 1;
	return artefact_is_key(p->name, slash + 1);
}

static int remove_artefact(const struct pruning *u, const struct pruned *p, const cJSON *version,
			   struct err *e)
{
	const char *uri = uri_of(version), *key;
	char bucket[64];
	struct err why = ERR_INIT;
	int r;

	if (!uri || !is_ours(p, uri, bucket, sizeof(bucket), &key) || is_shared(p, version))
		return 0;
	r = s3_head_object(u->at.a, bucket, u->at.account, key, &why);
	if (r == -ENOENT || r == -EACCES) /* expired; who may not list the bucket is refused then */
		return 0;
	if (r == 0 && !(u->flags & PRUNE_DRY))
		r = s3_delete_object(u->at.a, bucket, u->at.account, key, &why);
	if (r == 0)
		u->fn(u->arg, "artefact", uri, PRUNE_NO_SIZE);
	else if (e)
		*e = why;
	return r;
}

/* --- one image, and all --- */

static int prune_versions(const struct pruning *u, struct pruned *p, struct err *e)
{
	const cJSON *v;
	int r = 0;

	cJSON_ArrayForEach(v, p->versions) if (r == 0 && may_go(p, v)) r =
		remove_version(u, p, v, e);
	cJSON_ArrayForEach(v, p->gone) if (r == 0) r = remove_artefact(u, p, v, e);
	return r;
}

static int prune_image(const struct pruning *u, struct pruned *p, struct err *e)
{
	AUTO_JSN *versions = NULL, *vms = NULL, *gone = cJSON_CreateArray();
	int r = list_of(u->at.a, OP_LIST_MICROVM_IMAGE_VERSIONS, p->arn, &versions, e);

	p->versions = versions;
	p->gone = gone;
	if (r < 0 || cJSON_GetArraySize(versions) < 2)
		return r;
	r = list_of(u->at.a, OP_LIST_MICROVMS, p->arn, &vms, e);
	p->vms = vms;
	if (r == 0)
		r = state_each(on_record, p,
			       e); /* after the list: a create that is not in it is seen here */
	return r == 0 ? prune_versions(u, p, e) : r < 0 ? r : 0;
}

static int look_at(const struct pruning *u, const char *arn, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	struct pruned p = { .arn = arn };
	const char *state;
	int r = q && jsn_add_str(q, "imageIdentifier", arn)
			? ops_call(u->at.a, OP_GET_MICROVM_IMAGE, q, &w, e)
			: err_set(e, ERR_INTERNAL, ENOMEM, "GetMicrovmImage");

	p.name = vm_text(w.json, "name");
	p.active = vm_text(w.json, "latestActiveImageVersion");
	state = vm_text(w.json, "state");
	if (r == 0 && p.name && p.active && state && !strstr(state, "ING") &&
	    text_is(jsn_get(w.json, "tags"), IMAGE_TAG, p.name))
		r = prune_image(u, &p, e);
	aws_answer_done(&w);
	return r == -ENOENT ? 0 : r; /* somebody else has removed it */
}

int imageprune_aws(unsigned flags, prune_fn *fn, void *arg, struct err *e)
{
	struct pruning u = { .flags = flags, .fn = fn, .arg = arg };
	AUTO_JSN *images = NULL;
	const cJSON *i;
	int r;

	if (!(flags & PRUNE_IMAGES))
		return 0;
	r = image_place_open(&u.at, e);
	if (r == 0)
		r = list_of(u.at.a, OP_LIST_MICROVM_IMAGES, NULL, &images, e);
	cJSON_ArrayForEach(i, images)
	{
		const char *arn = vm_text(i, "imageArn");

		if (r == 0 && arn)
			r = look_at(&u, arn, e);
	}
	return r;
}
