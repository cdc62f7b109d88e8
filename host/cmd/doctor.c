/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/aws/doctor.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/local/local.h"
#include "lib/jsn.h"
#include "lib/str.h"

struct checks {
	cJSON *list; /* with --json */
	bool failed;
};

static int on_check(void *arg, const char *check, const char *status, const char *text)
{
	struct checks *k = arg;
	cJSON *j;

	if (strcmp(status, "fail") == 0)
		k->failed = true;
	if (!k->list)
		return out_line("%-5s %-8s %s", status, check, text);
	j = cJSON_CreateObject();
	if (!j || !cJSON_AddItemToArray(k->list, j) || !jsn_add_str(j, "check", check) ||
	    !jsn_add_str(j, "status", status) || !jsn_add_text(j, "text", text, strlen(text)))
		return -ENOMEM;
	return 0;
}

static int check_home(struct checks *k)
{
	struct err e = ERR_INIT;
	const char *dir;
	char text[ERR_MSG_MAX];

	if (state_dir(&dir, &e) < 0)
		return on_check(k, "home", "fail", e.msg);
	if (access(dir, R_OK | W_OK | X_OK) < 0) {
		(void)err_set(&e, ERR_IO, errno, "%s is not writable", dir);
		return on_check(k, "home", "fail", e.msg);
	}
	ignore_result(
		str_format(text, sizeof(text), "%s can be written", dir)); /* a cut path is fine */
	return on_check(k, "home", "ok", text);
}

static int count(void *arg, const struct state_record *r)
{
	(void)r;
	++*(unsigned *)arg;
	return 0;
}

static int check_state(struct checks *k)
{
	struct err e = ERR_INIT;
	unsigned n = 0;
	char text[80];

	if (state_each(count, &n, &e) < 0)
		return on_check(k, "state", "fail", e.msg);
	ignore_result(
		str_format(text, sizeof(text), "%u sandbox%s recorded", n, n == 1 ? "" : "es"));
	return on_check(k, "state", "ok", text);
}

static int on_aws(void *arg, const struct state_record *r)
{
	(void)arg;
	return backend_of_id(r->microvm_id) == &backend_aws;
}

/* Somebody means to use AWS, so that what is missing for it is a failure. */
static int wants_aws(void)
{
	const char *backend = getenv("AGENT_SANDBOX_BACKEND"),
		   *arn = getenv("AGENT_SANDBOX_IMAGE_ARN");

	if (backend && *backend)
		return strcmp(backend, backend_aws.name) == 0;
	return (arn && *arn) || state_each(on_aws, NULL, NULL) > 0;
}

int cmd_doctor(const struct cli *c)
{
	AUTO_JSN *doc = out_json_wanted() ? cJSON_CreateObject() : NULL;
	struct checks k = { .list = doc ? cJSON_AddArrayToObject(doc, "checks") : NULL };
	cJSON *give = doc;
	int r = check_home(&k);

	if (r == 0)
		r = check_state(&k);
	if (r == 0)
		r = local_doctor(on_check, &k);
	if (r == 0)
		r = aws_doctor(on_check, &k, wants_aws());
	if (r == 0 && doc) {
		if (!jsn_add_bool(doc, "ok", !k.failed))
			give = NULL;
		else
			doc = NULL;
		r = out_doc(give);
	}
	return r != 0 || k.failed ? c->cmd->failure : 0;
}
