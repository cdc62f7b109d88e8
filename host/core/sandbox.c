/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host/core/core.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * The order that leaves nothing behind: the name is recorded before the machine is begun and
 * forgotten after the machine is gone. So whoever finds a record can look for its machine, and a
 * machine without a record is one that its supervisor is about to end.
 *
 * A removal that comes while a machine is being made may find the record alone. So whoever makes one looks for its record
 * when the machine is there, and whoever removes one looks for the machine again when the record is gone: the later of the
 * two sees what the other has done.
 */

static int random_hex(char *out, size_t bytes, struct err *e)
{
	unsigned char r[16];

	if (getrandom(r, bytes, 0) != (ssize_t)bytes)
		return err_set(e, ERR_INTERNAL, errno, "getrandom");
	str_hex(r, bytes, out);
	return 0;
}

int core_run_name(char ret[static SANDBOX_NAME_MAX + 1], struct err *e)
{
	char hex[9];
	int r = random_hex(hex, 4, e);

	if (r == 0)
		r = str_format(ret, SANDBOX_NAME_MAX + 1, "asb-run-%s", hex);
	return r;
}

struct by_id {
	const char *id;
	char *name; /* owned */
};

static int match_id(void *arg, const struct state_record *r)
{
	struct by_id *m = arg;

	if (strcmp(r->microvm_id, m->id) != 0)
		return 0;
	m->name = strdup(r->name);
	return m->name ? 1 : -ENOMEM;
}

/* A sandbox by its id: also one that lost its record, which could not be named otherwise. */
static int find_by_id(const char *id, struct state_record *ret)
{
	const struct backend *b = backend_of_id(id);
	struct by_id m = { .id = id };
	struct sandbox_info i;
	int r;

	if (!backend_is_id(id) || b->info(id, &i, NULL) < 0)
		return -ENOENT;
	r = state_each(match_id, &m, NULL);
	if (r < 0)
		return r;
	*ret = (struct state_record){ .name = m.name ? m.name : strdup(id),
				      .microvm_id = strdup(id),
				      .image_arn = strdup(i.image) };
	if (ret->name && ret->microvm_id && ret->image_arn)
		return 0;
	state_record_done(ret);
	return -ENOMEM;
}

/* What --region and --profile say of the one sandbox that a command names. */
static struct {
	const char *region, *profile;
} named_place;

void core_place(const struct cli *c)
{
	const char *region = c->val[OPT_REGION].set ? c->val[OPT_REGION].text : NULL;
	const char *profile = c->val[OPT_PROFILE].set ? c->val[OPT_PROFILE].text : NULL;

	if (!region && !profile)
		return;
	backend_aws.place(region, profile);
	if (c->cmd->args[0].kind != ARG_SANDBOX && c->cmd->args[0].kind != ARG_COPY)
		return;
	named_place.region = region;
	named_place.profile = profile;
}

/* A MicroVM is in one region: asked for in another it would seem to be gone, and rm would forget it. */
static int check_place(const struct core_named *n, struct err *e)
{
	const char *region = named_place.region, *own = n->record.region;

	if (!n->backend->place && (region || named_place.profile))
		return err_set(e, ERR_USAGE, EINVAL,
			       "--%s is for the aws backend, and '%s' is on %s",
			       region ? "region" : "profile", n->record.name, n->backend->name);
	if (region && own && strcmp(region, own) != 0)
		return err_set(e, ERR_USAGE, EINVAL, "'%s' is in %.40s, not in %.40s",
			       n->record.name, own, region);
	return 0;
}

int core_find(const char *name, struct core_named *ret, struct err *e)
{
	struct core_named n = { .backend = NULL, .hold = -1 };
	int r = state_get(name, &n.record, e);

	if (r == -ENOENT && find_by_id(name, &n.record) == 0)
		r = 0;
	if (r < 0)
		return r;
	n.backend = backend_of_id(n.record.microvm_id);
	r = check_place(&n, e);
	if (r < 0) {
		state_record_done(&n.record);
		return r;
	}
	*ret = n;
	return 0;
}

void core_named_done(struct core_named *n)
{
	core_let_go(n);
	state_record_done(&n->record);
}

static int record(const struct core_made *m, const char *image, struct err *e)
{
	char id[SANDBOX_ID_MAX + 1], name[SANDBOX_NAME_MAX + 1], img[SANDBOX_IMAGE_MAX + 1];
	struct state_record r = { .name = name, .microvm_id = id, .image_arn = img };
	int rc = str_format(id, sizeof(id), "%s", m->id);

	if (rc == 0)
		rc = str_format(name, sizeof(name), "%s", m->name);
	if (rc == 0)
		rc = str_format(img, sizeof(img), "%s", image);
	return rc < 0 ? err_set(e, ERR_INVALID, -rc, "the sandbox's record") : state_add(&r, e);
}

/* Tries to forget the name after something else has failed, whose message stays. */
static void unrecord(const struct core_made *m)
{
	ignore_result(state_remove(m->name, m->id, NULL));
}

/* The platform has given the machine another id. */
static int on_named(void *arg, const struct sandbox_naming *n, struct err *e)
{
	struct core_made *m = arg;
	struct state_record r = { .name = m->name };
	int rc = -ENOMEM;

	r.microvm_id = strdup(n->id);
	r.image_arn = strdup(n->image);
	r.endpoint = n->endpoint ? strdup(n->endpoint) : NULL;
	r.region = n->region ? strdup(n->region) : NULL;
	if (r.microvm_id && r.image_arn)
		rc = state_replace(m->id, &r, e);
	if (rc == 0)
		rc = str_format(m->id, sizeof(m->id), "%s", n->id);
	r.name = NULL;
	state_record_done(&r);
	return rc == -ENOMEM ? err_set(e, ERR_INTERNAL, ENOMEM, "the sandbox's record") : rc;
}

/* Ends a machine that was made and is not wanted. The record of one that could not be ended stays. */
static int end_made(struct core_made *m, struct err *e)
{
	int r;

	m->backend->drop(m->owner);
	m->owner = NULL;
	r = m->backend->remove(m->id, e);
	return r < 0 ? r : state_remove(m->name, m->id, e);
}

int core_create(const struct backend *b, const struct sandbox_spec *asked, struct progress *p,
		int64_t limit_ns, struct core_made *ret, struct err *e)
{
	struct sandbox_spec own = *asked, *spec = &own;
	struct core_made m = { .backend = b };
	char hex[17];
	int r = random_hex(hex, 8, e);

	if (r < 0)
		return r;
	if (str_format(m.id, sizeof(m.id), "%s-%s", b->name, hex) < 0 ||
	    str_format(m.name, sizeof(m.name), "%s", spec->name) < 0)
		return err_set(e, ERR_INVALID, ENAMETOOLONG, "the sandbox's name");
	if (b->collect)
		b->collect();
	own.named = on_named;
	own.named_arg = &m;
	core_cancel_begin(p);
	r = record(&m, spec->image, e);
	if (r == 0) {
		r = b->create(spec, m.id, p, loop_now() + limit_ns, &m.owner, e);
		core_cancel_end();
		if (r == 0 && core_cancelled()) {
			r = end_made(&m, e);
			if (r == 0)
				r = err_set(e, ERR_UNAVAILABLE, EINTR, "starting the sandbox");
		} else if (r < 0 && r != -ENOTRECOVERABLE) {
			unrecord(&m);
		}
	} else {
		core_cancel_end();
	}
	if (r == 0)
		*ret = m;
	return r;
}

int core_still_recorded(const char *name, const char *id, struct err *e)
{
	struct state_record rec;
	bool ours;
	int r = state_get(name, &rec, e);

	if (r < 0 && r != -ENOENT)
		return r;
	ours = r == 0 && strcmp(rec.microvm_id, id) == 0;
	if (r == 0)
		state_record_done(&rec);
	if (ours)
		return 0;
	(void)err_set(e, ERR_CONFLICT, 0, "'%s' was removed while it was being made", name);
	return -ECANCELED;
}

int core_keep(struct core_made *m, struct err *e)
{
	int r = core_still_recorded(m->name, m->id, e);

	if (r < 0)
		m->backend->drop(m->owner);
	else
		r = m->backend->keep(m->owner, e);
	m->owner = NULL;
	if (r < 0) {
		ignore_result(
			m->backend->remove(m->id,
					   NULL)); /* it has most likely gone with its owner */
		unrecord(m);
	}
	return r;
}

int core_drop(struct core_made *m, struct err *e)
{
	return end_made(m, e);
}

int core_remove(const struct core_named *n, struct err *e)
{
	const char *id = n->record.microvm_id;
	struct err why = ERR_INIT; /* of a machine that is not there, too */
	int r = n->backend->remove(id, &why);

	if (r == 0)
		r = state_remove(n->record.name, id, &why);
	if (r == 0 && n->backend == &backend_local) /* another has its id from the platform */
		r = n->backend->remove(id, &why);
	if (r < 0 && e)
		*e = why;
	return r;
}
