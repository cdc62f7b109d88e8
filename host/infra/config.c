/* SPDX-License-Identifier: Apache-2.0 */
#include "host/infra/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/infra/yaml.h"
#include "lib/str.h"

/*
 * The keys are one table of dotted paths. A key that begins the path of others is a section. Null stands for "not given", as with
 * the Python loader; an empty text does where the key has no default or an empty one.
 */

enum what { TEXT, LIST, FLAG, DAYS };

struct form { /* what a value has to look like */
	const char *
		bytes; /* those allowed besides letters and digits; NULL = all but control characters */
	size_t max;
	const char *begin; /* "" = anything */
	const char *in;	   /* must be in it; "" = anything */
	const char *say;   /* for people */
	bool lower;
};

static const struct form
	any = { NULL, 1024, "", "", "text without control characters", false },
	label = { "._-", 64, "", "", "up to 64 letters, digits, '.', '_' and '-'", false },
	name = { "_-", 64, "", "", "up to 64 letters, digits, '_' and '-'", false },
	egress_name = { "_-", 55, "", "", "up to 55 letters, digits, '_' and '-'", false },
	region = { "-", 32, "", "", "a region such as us-east-1", true },
	role_name = { "_+=,.@-", 64, "", "", "up to 64 letters, digits and _+=,.@-", false },
	bucket = { ".-", 63, "", "", "3 to 63 lower-case letters, digits, '.' and '-'", true },
	role_arn = { NULL, 512, "arn:", ":role/", "the ARN of a role", false },
	policy_arn = { NULL, 512, "arn:", ":policy/", "the ARN of a policy", false },
	image_arn = { NULL, 512, "arn:", ":microvm-image:", "the ARN of a MicroVM image", false },
	connector_arn = { NULL,
			  140,
			  "arn:",
			  ":network-connector:",
			  "the ARN of a network connector",
			  false },
	version = { ".", 32, "", "", "a version such as \"1.0\"", false },
	vpc = { "-", 63, "vpc-", "", "a VPC's id, vpc-…", false },
	group = { "-", 63, "sg-", "", "a security group's id, sg-…", false };

static const struct key {
	const char *path;
	enum what what;
	enum infra_text at;
	const struct form *form;
	const char *def;
} keys[] = {
	{ "project", TEXT, INFRA_PROJECT, &label, "agent-sandbox-os" },
	{ "stack", TEXT, INFRA_STACK, &label, "dev" },
	{ "region", TEXT, INFRA_REGION, &region, "us-east-1" },
	{ "image.name", TEXT, INFRA_IMAGE_NAME, &name, "agent-sandbox-guest" },
	{ "image.guest_dir", TEXT, INFRA_GUEST_DIR, &any, "./guest" },
	{ "image.base_image_arn", TEXT, INFRA_BASE_ARN, &image_arn, "" },
	{ "image.base_image_version", TEXT, INFRA_BASE_VERSION, &version, "" },
	{ "role.arn", TEXT, INFRA_ROLE_ARN, &role_arn, "" },
	{ "role.name", TEXT, INFRA_ROLE_NAME, &role_name, "agent-sandbox-exec" },
	{ "role.extra_policy_arns", LIST, INFRA_TEXT_COUNT, &policy_arn, NULL },
	{ "build_role.arn", TEXT, INFRA_BUILD_ROLE_ARN, &role_arn, "" },
	{ "build_role.name", TEXT, INFRA_BUILD_ROLE_NAME, &role_name, "" },
	{ "bucket.name", TEXT, INFRA_BUCKET, &bucket, "" },
	{ "bucket.expire_days", DAYS, INFRA_TEXT_COUNT, NULL, NULL },
	{ "network.egress.enabled", FLAG, INFRA_TEXT_COUNT, NULL, NULL },
	{ "network.egress.connector_arn", TEXT, INFRA_CONNECTOR_ARN, &connector_arn, "" },
	{ "network.egress.name", TEXT, INFRA_EGRESS_NAME, &egress_name, "agent-sandbox-egress" },
	{ "network.egress.vpc_id", TEXT, INFRA_VPC, &vpc, "" },
	{ "network.egress.subnet_ids", LIST, INFRA_TEXT_COUNT, &any, NULL },
	{ "network.egress.security_group_id", TEXT, INFRA_SECURITY_GROUP, &group, "" },
	{ "network.egress.operator_role_arn", TEXT, INFRA_OPERATOR_ARN, &role_arn, "" },
};
#define EXPIRE_DAYS 30

struct reading {
	struct infra_config *c;
	struct err *e;
	bool egress_said, egress_wanted; /* network.egress.enabled */
};

static int refuse(const struct reading *r, const struct yaml_node *at, const char *fmt, ...)
	PRINTF(3, 4);

static int refuse(const struct reading *r, const struct yaml_node *at, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	(void)err_set(r->e, ERR_INVALID, 0, "%s:%u:%u: %s", r->c->file, at->line, at->column, what);
	return -EINVAL;
}

static bool fits(const struct form *f, const char *s)
{
	size_t n = strlen(s);

	if (n > f->max || !str_starts(s, f->begin) || !strstr(s, f->in) || !str_is_utf8(s, n) ||
	    (f == &bucket && n < 3))
		return false;
	for (; *s; s++) {
		bool upper = *s >= 'A' && *s <= 'Z', lower = *s >= 'a' && *s <= 'z';

		if (!f->bytes ? (unsigned char)*s < ' ' || *s == 0x7f
			      : !(lower || (upper && !f->lower) || (*s >= '0' && *s <= '9') ||
				  strchr(f->bytes, *s)))
			return false;
	}
	return true;
}

static int take_text(const struct reading *r, const struct key *k, const struct yaml_node *n,
		     char **ret)
{
	char *s;

	if (n->kind == YAML_OTHER)
		return refuse(r, n, "%s: text is wanted; put '%.60s' into quotes", k->path,
			      n->text);
	if (n->kind != YAML_TEXT)
		return refuse(r, n, "%s: text is wanted, not %s", k->path, yaml_kind_name(n));
	if (!*n->text && (!k->def || *k->def))
		return refuse(r, n, "%s: must not be empty", k->path);
	if (*n->text && !fits(k->form, n->text))
		return refuse(r, n, "%s: '%.100s' is not %s", k->path, n->text, k->form->say);
	s = strdup(n->text);
	if (!s)
		return err_set(r->e, ERR_INTERNAL, ENOMEM, "reading %s", r->c->file);
	free(*ret);
	*ret = s;
	return 0;
}

static int take_list(const struct reading *r, const struct key *k, const struct yaml_node *n)
{
	struct infra_list *l =
		strcmp(k->path, "role.extra_policy_arns") == 0 ? &r->c->policies : &r->c->subnets;

	if (n->kind != YAML_LIST)
		return refuse(r, n, "%s: a list is wanted, not %s", k->path, yaml_kind_name(n));
	if (n->len > INFRA_LIST_MAX)
		return refuse(r, n, "%s: has %zu entries, at most %d are possible", k->path, n->len,
			      INFRA_LIST_MAX);
	l->all = calloc(n->len + 1, sizeof(*l->all));
	if (!l->all)
		return err_set(r->e, ERR_INTERNAL, ENOMEM, "reading %s", r->c->file);
	for (size_t i = 0; i < n->len; i++) {
		int rc = take_text(r, k, n->items[i], &l->all[i]);

		if (rc < 0)
			return rc;
		l->len++;
	}
	return 0;
}

static int take_flag(struct reading *r, const struct key *k, const struct yaml_node *n)
{
	bool yes = n->kind == YAML_OTHER && strcmp(n->text, "true") == 0;

	if (!yes && (n->kind != YAML_OTHER || strcmp(n->text, "false") != 0))
		return refuse(r, n, "%s: true or false is wanted", k->path);
	r->egress_said = true;
	r->egress_wanted = yes;
	return 0;
}

static int take_days(const struct reading *r, const struct key *k, const struct yaml_node *n)
{
	uint64_t days;

	if (n->kind != YAML_OTHER || str_to_u64(n->text, 0, 3650, &days) < 0)
		return refuse(r, n, "%s: a number of days is wanted, 0 to 3650", k->path);
	r->c->expire_days = (unsigned)days;
	return 0;
}

static int take(struct reading *r, const struct key *k, const struct yaml_node *n)
{
	if (n->kind == YAML_NULL)
		return 0;
	switch (k->what) {
	case LIST:
		return take_list(r, k, n);
	case FLAG:
		return take_flag(r, k, n);
	case DAYS:
		return take_days(r, k, n);
	case TEXT:
		break;
	}
	return take_text(r, k, n, &r->c->text[k->at]);
}

/* The keys of MAP, which is the section PREFIX ("" or "image."). */
static int read_section(struct reading *r, const char *prefix, const struct yaml_node *map);

static int read_key(struct reading *r, const char *prefix, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	char path[64], section[66];
	bool is_section = false;

	if (strchr(key->text, '.') || str_format(path, sizeof(path), "%s%s", prefix, key->text) < 0)
		return refuse(r, key, "unknown key '%.40s'", key->text);
	ignore_result(str_format(section, sizeof(section), "%s.", path)); /* fits */
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].path, path) == 0)
			return take(r, &keys[i], value);
		is_section |= str_starts(keys[i].path, section);
	}
	if (!is_section)
		return refuse(r, key, "unknown key '%s'", path);
	if (value->kind == YAML_NULL)
		return 0;
	if (value->kind != YAML_MAP)
		return refuse(r, value, "%s: a mapping is wanted, not %s", path,
			      yaml_kind_name(value));
	return read_section(r, section, value);
}

static int read_section(struct reading *r, const char *prefix, const struct yaml_node *map)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < map->len; i++)
		rc = read_key(r, prefix, map->keys[i], map->items[i]);
	return rc;
}

/* --- a document --- */

static int set_defaults(struct infra_config *c, const char *file, unsigned line)
{
	*c = (struct infra_config){ .line = line, .expire_days = EXPIRE_DAYS };
	c->file = strdup(file);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (keys[i].what != TEXT)
			continue;
		c->text[keys[i].at] = strdup(keys[i].def);
		if (!c->text[keys[i].at])
			return -ENOMEM;
	}
	return c->file ? 0 : -ENOMEM;
}

static void config_done(struct infra_config *c)
{
	for (size_t i = 0; i < INFRA_TEXT_COUNT; i++)
		free(c->text[i]);
	for (size_t i = 0; i < c->policies.len; i++)
		free(c->policies.all[i]);
	for (size_t i = 0; i < c->subnets.len; i++)
		free(c->subnets.all[i]);
	free(c->policies.all);
	free(c->subnets.all);
	free(c->file);
}

void infra_configs_done(struct infra_configs *c)
{
	for (size_t i = 0; i < c->len; i++)
		config_done(&c->all[i]);
	free(c->all);
	*c = (struct infra_configs){ NULL, 0 };
}

/* The build role is named after the other: "agent-sandbox-build" for "agent-sandbox-exec", else NAME-build. */
static int name_build_role(struct infra_config *c)
{
	const char *role = c->text[INFRA_ROLE_NAME];
	size_t n = strlen(role);
	char out[80];

	if (*c->text[INFRA_BUILD_ROLE_NAME])
		return 0;
	if (n > 5 && strcmp(role + n - 5, "-exec") == 0)
		n -= 5;
	if (str_format(out, sizeof(out), "%.*s-build", (int)n, role) < 0 || strlen(out) > 64)
		return -ENAMETOOLONG;
	free(c->text[INFRA_BUILD_ROLE_NAME]);
	c->text[INFRA_BUILD_ROLE_NAME] = strdup(out);
	return c->text[INFRA_BUILD_ROLE_NAME] ? 0 : -ENOMEM;
}

/* Any of these means that egress is wanted, as in the Python project; the name alone does not. */
static bool egress_implied(const struct infra_config *c)
{
	return *c->text[INFRA_CONNECTOR_ARN] || *c->text[INFRA_VPC] ||
	       *c->text[INFRA_SECURITY_GROUP] || *c->text[INFRA_OPERATOR_ARN] || c->subnets.len;
}

static int finish(struct reading *r, const struct yaml_node *doc, const char *stack)
{
	struct infra_config *c = r->c;
	char *s;

	if (stack) {
		if (!*stack || !fits(&label, stack))
			return err_set(r->e, ERR_USAGE, 0, "'%.80s' is not a stack's name: %s",
				       stack, label.say);
		s = strdup(stack);
		if (!s)
			return err_set(r->e, ERR_INTERNAL, ENOMEM, "reading %s", c->file);
		free(c->text[INFRA_STACK]);
		c->text[INFRA_STACK] = s;
	}
	switch (name_build_role(c)) {
	case -ENAMETOOLONG:
		return refuse(
			r, doc,
			"role.name is too long to name the build role after it: give build_role.name");
	case -ENOMEM:
		return err_set(r->e, ERR_INTERNAL, ENOMEM, "reading %s", c->file);
	default:
		break;
	}
	if (!*c->text[INFRA_ROLE_ARN] && !*c->text[INFRA_BUILD_ROLE_ARN] &&
	    strcmp(c->text[INFRA_ROLE_NAME], c->text[INFRA_BUILD_ROLE_NAME]) == 0)
		return refuse(
			r, doc,
			"role.name and build_role.name are the same: sandboxes would get the rights of builds");
	if (r->egress_said && !r->egress_wanted && egress_implied(c))
		return refuse(
			r, doc,
			"network.egress.enabled is false, and other keys there ask for egress");
	c->egress = r->egress_wanted || egress_implied(c);
	return 0;
}

static int add_document(const char *file, const struct yaml_node *doc, const char *stack,
			struct infra_configs *ret, struct err *e)
{
	struct reading r = { .e = e };
	struct infra_config *all;
	int rc;

	if (ret->len == INFRA_CONFIGS_MAX)
		return err_set(e, ERR_TOO_BIG, 0, "%s: there are over %d stacks", file,
			       INFRA_CONFIGS_MAX);
	all = realloc(ret->all, (ret->len + 1) * sizeof(*all));
	if (!all)
		return err_set(e, ERR_INTERNAL, ENOMEM, "reading %s", file);
	ret->all = all;
	r.c = &all[ret->len++];
	rc = set_defaults(r.c, file, doc->line);
	if (rc < 0)
		return err_set(e, ERR_INTERNAL, -rc, "reading %s", file);
	if (doc->kind != YAML_MAP)
		return refuse(&r, doc, "a mapping is wanted at the top, not %s",
			      yaml_kind_name(doc));
	rc = read_section(&r, "", doc);
	return rc < 0 ? rc : finish(&r, doc, stack);
}

int infra_config_parse(const char *file, const char *p, size_t n, const char *stack,
		       struct infra_configs *ret, struct err *e)
{
	struct yaml_file f;
	size_t found = 0;
	int r = yaml_read(file, p, n, &f, e);

	for (size_t i = 0; r == 0 && i < f.docs_len; i++) {
		if (f.docs[i]->kind == YAML_NULL) /* "---" with nothing behind it */
			continue;
		found++;
		r = add_document(file, f.docs[i], stack, ret, e);
	}
	yaml_done(&f);
	if (r == 0 && !found)
		return err_set(e, ERR_INVALID, 0, "%s: there is no document in it", file);
	return r;
}
