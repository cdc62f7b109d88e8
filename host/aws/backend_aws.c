/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/aws.h"
#include "host/aws/imageops.h"
#include "host/aws/ops.h"
#include "host/aws/token.h"
#include "host/aws/vm.h"
#include "host/backend.h"
#include "host/state/state.h"
#include "lib/loop.h"
#include "lib/pretty.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * AWS Lambda MicroVMs as commands see them. Where a VM is and how it is reached stands in its record in state.json (region,
 * endpoint); a VM without a record is looked for in the configured region.
 */

#define SUSPEND_NS  60000000000LL
#define INSPECT_CAP (256U << 10)

/* --- records --- */

struct lookup {
	const char *id;
	struct state_record found; /* owned; microvm_id NULL = none */
};

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static int on_record(void *arg, const struct state_record *r)
{
	struct lookup *l = arg;

	if (strcmp(r->microvm_id, l->id) != 0)
		return 0;
	l->found = (struct state_record){ .name = copy(r->name),
					  .microvm_id = copy(r->microvm_id),
					  .endpoint = copy(r->endpoint),
					  .region = copy(r->region) };
	return 1;
}

/* A record whose VM was never made, or whose making nobody saw the end of. */
static bool is_pending(const char *id)
{
	return str_starts(id, "aws-");
}

static int never_made(const char *id, struct err *e)
{
	(void)err_set(e, ERR_NOT_FOUND, 0,
		      "%.60s: asb ended while it asked AWS for the MicroVM (asb ls --all shows "
		      "whether there is one, asb rm forgets this name)",
		      id);
	return -ENOENT;
}

/* The session for the VM, and its record as far as there is one: state_record_done. */
static int session_of(const char *id, struct aws **ret, struct state_record *rec, struct err *e)
{
	struct lookup l = { .id = id };
	int r = is_pending(id) ? never_made(id, e) : state_each(on_record, &l, e);

	*rec = l.found;
	if (r >= 0)
		r = aws_session(rec->region, ret, e);
	if (r < 0)
		state_record_done(rec);
	return r;
}

/* --- one VM --- */

static int get(const char *id, cJSON **ret, struct err *e)
{
	struct state_record rec;
	struct aws *a;
	int r = session_of(id, &a, &rec, e);

	if (r < 0)
		return r;
	r = vm_get(a, id, ret, e);
	state_record_done(&rec);
	return r;
}

static int aws_info(const char *id, struct sandbox_info *ret, struct err *e)
{
	cJSON *doc;
	int r = get(id, &doc, e);

	if (r < 0)
		return r;
	vm_read(doc, ret);
	cJSON_Delete(doc);
	return 0;
}

static int aws_inspect(const char *id, char **ret_json, struct err *e)
{
	AUTO_JSN *doc = NULL;
	AUTO_BUF b;
	int r = get(id, &doc, e);

	buf_init(&b, INSPECT_CAP);
	if (r < 0)
		return r;
	r = pretty_json(doc, &b);
	*ret_json = r == 0 ? buf_take(&b) : NULL;
	return *ret_json ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "inspect");
}

static int aws_suspend(const char *id, struct err *e)
{
	struct state_record rec;
	struct aws *a;
	int r = session_of(id, &a, &rec, e);

	if (r < 0)
		return r;
	r = vm_do(a, OP_SUSPEND_MICROVM, id, e);
	if (r == 0)
		r = vm_wait(a, id, SANDBOX_SUSPENDED, NULL, loop_now() + SUSPEND_NS, NULL, e);
	state_record_done(&rec);
	return r;
}

static int resume(struct aws *a, const char *id, const struct progress *p, int64_t deadline_ns,
		  struct err *e)
{
	struct sandbox_info i;
	cJSON *doc;
	int r = vm_get(a, id, &doc, e);

	if (r < 0)
		return r;
	vm_read(doc, &i);
	cJSON_Delete(doc);
	if (i.state == SANDBOX_TERMINATED || i.state == SANDBOX_TERMINATING)
		return err_set(
			e, ERR_CONFLICT, 0,
			"the MicroVM has ended%s%s, and AWS keeps nothing of it to start again",
			i.reason[0] ? ": " : "", i.reason);
	r = vm_do(a, OP_RESUME_MICROVM, id, e);
	return r < 0 ? r : vm_wait(a, id, SANDBOX_RUNNING, p, deadline_ns, NULL, e);
}

static int aws_resume(const char *id, const struct progress *p, int64_t deadline_ns, struct err *e)
{
	struct state_record rec;
	struct aws *a;
	int r = session_of(id, &a, &rec, e);

	if (r < 0)
		return r;
	fetch_cancel(a->fetch, p ? p->cancel : NULL);
	r = resume(a, id, p, deadline_ns, e);
	fetch_cancel(a->fetch, NULL);
	state_record_done(&rec);
	return r;
}

/* Terminate is accepted in every state; that it takes a moment is nobody's concern. */
static int aws_remove(const char *id, struct err *e)
{
	struct state_record rec;
	struct aws *a;
	int r;

	if (is_pending(id))
		return 0;
	r = session_of(id, &a, &rec, e);
	if (r < 0)
		return r;
	r = vm_do(a, OP_TERMINATE_MICROVM, id, e);
	state_record_done(&rec);
	if (r < 0 && r != -ENOENT)
		return r;
	token_forget(id);
	return 0;
}

static int aws_remove_listed(const struct sandbox_info *i, struct err *e)
{
	struct aws *a;
	int r = aws_session(i->region, &a, e);

	if (r == 0)
		r = vm_do(a, OP_TERMINATE_MICROVM, i->id, e);
	if (r == 0 || r == -ENOENT)
		token_forget(i->id);
	return r == -ENOENT ? 0 : r;
}

/* --- all --- */

#define REGIONS_MAX 16

struct regions {
	char name[REGIONS_MAX][AWS_REGION_MAX + 1];
	size_t len;
	bool configured; /* there is a record without one */
};

static int add_name(struct regions *g, const char *name)
{
	for (size_t i = 0; i < g->len; i++)
		if (strcmp(g->name[i], name) == 0)
			return 0;
	if (g->len == REGIONS_MAX ||
	    str_format(g->name[g->len], sizeof(g->name[0]), "%s", name) < 0)
		return -E2BIG;
	g->len++;
	return 0;
}

static int add_region(void *arg, const struct state_record *r)
{
	struct regions *g = arg;

	if (backend_of_id(r->microvm_id) != &backend_aws || is_pending(r->microvm_id))
		return 0;
	g->configured = g->configured || !r->region;
	return r->region ? add_name(g, r->region) : 0;
}

struct each {
	int (*fn)(void *arg, const struct sandbox_info *i);
	void *arg;
	const char *region;
};

static int on_vm(void *arg, const cJSON *item)
{
	const struct each *each = arg;
	struct sandbox_info i;

	vm_read(item, &i);
	ignore_result(str_format(i.region, sizeof(i.region), "%s", each->region)); /* it fits */
	return i.id[0] ? each->fn(each->arg, &i) : 0;
}

/* Each region once, so that no VM is told twice. That the configured one cannot be found matters only where nothing else would be asked. */
static int find_regions(bool every, struct regions *g, struct err *e)
{
	struct err why = ERR_INIT;
	const char *name;
	struct aws *a;
	int r = state_each(add_region, g, e);
	bool needed = g->configured || g->len == 0;

	if (r == 0 && (every || needed)) {
		r = aws_session(NULL, &a, needed ? e : &why);
		if (r == 0)
			r = aws_region(a, &name, needed ? e : &why);
		if (r == 0)
			r = add_name(g, name);
		else if (!needed)
			r = 0;
	}
	return r == -E2BIG ? err_set(e, ERR_TOO_BIG, 0, "the records are of too many regions") : r;
}

/* One listing for each region, however many VMs there are. */
static int aws_list(bool every, int (*fn)(void *arg, const struct sandbox_info *i), void *arg,
		    struct err *e)
{
	struct regions g = { .len = 0 };
	struct each each = { .fn = fn, .arg = arg };
	int r = find_regions(every, &g, e);

	for (size_t i = 0; i < g.len && r == 0; i++) {
		AUTO_JSN *q = cJSON_CreateObject();
		struct aws *a;

		each.region = g.name[i];
		r = aws_session(g.name[i], &a, e);
		if (r == 0)
			r = q && jsn_add_u64(q, "maxResults", 50)
				    ? ops_each(a, OP_LIST_MICROVMS, q, on_vm, &each, e)
				    : err_set(e, ERR_INTERNAL, ENOMEM, "ListMicrovms");
	}
	return r;
}

/* --- the way in --- */

static int aws_route(const char *id, const struct backend_ports *ports, bool fresh,
		     struct backend_route *ret, struct err *e)
{
	struct state_record rec;
	AUTO_JSN *doc = NULL;
	struct aws *a;
	const char *endpoint;
	int r = session_of(id, &a, &rec, e);

	if (r < 0)
		return r;
	endpoint = rec.endpoint;
	if (!endpoint) {
		r = vm_get(a, id, &doc, e);
		endpoint = vm_text(doc, "endpoint");
	}
	if (r == 0 && !endpoint)
		r = err_set(e, ERR_UNAVAILABLE, 0, "the MicroVM has no endpoint yet");
	if (r == 0)
		r = token_route(a, id, endpoint, ports, fresh, ret, e);
	state_record_done(&rec);
	return r;
}

static int aws_open_log(const char *id, const struct log_wish *w, struct backend_log *ret,
			struct err *e)
{
	struct state_record rec;
	struct aws *a;
	int r = session_of(id, &a, &rec, e);

	if (r < 0)
		return r;
	r = vmlog_open(a, id, w, ret, e);
	state_record_done(&rec);
	return r;
}

const struct backend backend_aws = {
	.name = "aws",
	.place = settings_choose,
	.create = run_create,
	.keep = run_keep,
	.drop = run_drop,
	.info = aws_info,
	.list = aws_list,
	.inspect = aws_inspect,
	.suspend = aws_suspend,
	.resume = aws_resume,
	.remove = aws_remove,
	.remove_listed = aws_remove_listed,
	.route = aws_route,
	.open_log = aws_open_log,
	.prune = imageprune_aws,
	.size_of_image = true,
	.images = &imageops_aws,
};
