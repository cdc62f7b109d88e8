/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/infra/record.c host/state/file.c */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/infra/record.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "tap.h"

static char dir[64], path[96];

static void put_file(const char *text)
{
	ok_int(fd_replace_file(path, text, strlen(text), 0600), 0, "a state file");
}

static const char *file(void)
{
	static char text[8192];
	AUTO_BUF b;

	buf_init(&b, sizeof(text) - 1);
	ignore_result(fd_read_file(AT_FDCWD, path, &b));
	memcpy(text, b.p ? b.p : "", b.len + 1);
	return text;
}

static int put(enum infra_res res, const char *id, bool managed, bool creating, const char *attrs)
{
	char own[64];
	struct infra_record r = { .id = own, .managed = managed, .creating = creating };
	int rc;

	ignore_result(str_format(own, sizeof(own), "%s", id));
	r.attrs = attrs ? cJSON_Parse(attrs) : NULL;
	rc = infra_record_put("p/s", res, &r, NULL);
	cJSON_Delete(r.attrs);
	return rc;
}

/* As its loader does: json.load, then these members. */
static const char python_file[] =
	"{\n  \"version\": 7,\n  \"stacks\": {\n    \"p/s\": {\n      \"resources\": {\n        \"role\": {\n"
	"          \"kind\": \"iam-role\",\n          \"id\": \"r\",\n          \"managed\": true,\n"
	"          \"attrs\": {\n            \"arn\": \"arn:aws:iam::1:role/r\",\n            \"note\": \"x\"\n          }\n"
	"        }\n      },\n      \"outputs\": {\n        \"image_arn\": \"arn:i\"\n      },\n      \"extra\": []\n"
	"    },\n    \"q/s\": {\n      \"resources\": {}\n    }\n  }\n}\n";

static void python_to_us(void)
{
	struct infra_record r;
	cJSON *o = NULL;

	put_file(python_file);
	ok_int(infra_record_get("p/s", RES_ROLE, &r, NULL), 0, "a record of the Python project");
	ok_str(r.id, "r", "its id");
	ok(r.managed && !r.creating, "it is managed");
	ok_str(cJSON_GetStringValue(jsn_get(r.attrs, "arn")), "arn:aws:iam::1:role/r",
	       "its attributes");
	infra_record_done(&r);
	ok_int(infra_record_get("p/s", RES_BUCKET, &r, NULL), 0, "one that is not there");
	ok(!r.id && cJSON_IsObject(r.attrs), "has no id, and empty attributes");
	infra_record_done(&r);
	ok_int(infra_record_get("none/s", RES_ROLE, &r, NULL), 0, "a stack that is not there");
	ok(!r.id, "has none");
	infra_record_done(&r);
	ok_int(infra_outputs_get("p/s", &o, NULL), 0, "outputs");
	ok_str(cJSON_GetStringValue(jsn_get(o, "image_arn")), "arn:i", "as they are");
	cJSON_Delete(o);
}

static void us_to_python(void)
{
	AUTO_JSN *before = cJSON_Parse(python_file), *now = NULL;
	struct stat st;

	ok_int(put(RES_ROLE, "r2", false, true, "{\"arn\": \"a2\"}"), 0, "changed");
	now = cJSON_Parse(file());
	cJSON *role =
		cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(now, "stacks"), "p/s"),
				    "resources");
	role = cJSON_GetObjectItem(role, "role");
	ok_str(cJSON_GetStringValue(jsn_get(role, "id")), "r2", "the id");
	ok_str(cJSON_GetStringValue(jsn_get(role, "kind")), "iam-role", "the kind");
	ok(cJSON_IsFalse(jsn_get(role, "managed")), "managed");
	ok_str(cJSON_GetStringValue(jsn_get(jsn_get(role, "attrs"), "note")), "x",
	       "an unknown attribute stays");
	ok(cJSON_IsTrue(jsn_get(jsn_get(role, "attrs"), "creating")),
	   "that it is about to be made");
	ok_int(stat(path, &st), 0, "the file");
	ok_int(st.st_mode & 0777, 0600, "is private");
	ok_int(put(RES_ROLE, "r", true, false, "{\"arn\": \"arn:aws:iam::1:role/r\"}"), 0,
	       "and back");
	ok_str(file(), python_file, "gives the very bytes of json.dumps(indent=2), less nothing");
	ok_int(infra_record_clear("p/s", NULL), 0, "a stack with resources");
	ok_str(file(), python_file, "is not cleared");
	ok_int(infra_record_drop("p/s", RES_ROLE, NULL), 0, "dropped");
	ok_int(infra_record_drop("p/s", RES_ROLE, NULL), 0, "twice is fine");
	ok_int(infra_record_clear("p/s", NULL), 0, "cleared");
	ok(!strstr(file(), "p/s") && strstr(file(), "\"version\": 7") && strstr(file(), "q/s"),
	   "the rest stays");
	(void)before;
}

static void damaged(void)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"stacks\": []}",
		"{\"stacks\": {\"a/b\": 1}}",
		"{\"stacks\": {\"a/b\": {\"resources\": []}}}",
		"{\"stacks\": {\"a/b\": {\"resources\": {\"role\": {}}}}}",
		"{\"stacks\": {\"a/b\": {\"resources\": {\"role\": {\"id\": \"x\", \"managed\": 1}}}}}",
		"{\"stacks\": {\"a/b\": {\"outputs\": 1}}}",
		"{\"stacks\""
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct infra_record r;
		struct err e = ERR_INIT;

		put_file(bad[i]);
		ok(infra_record_get("a/b", RES_ROLE, &r, &e) < 0, "damaged: %s", bad[i]);
		ok(strstr(e.msg, "is damaged") && strstr(e.msg, path), "  says so, with the path");
		ok(put(RES_ROLE, "r", true, false, NULL) < 0, "  and is not written over");
		ok_str(file(), bad[i], "  it is as it was");
	}
	ok_int(unlink(path), 0, "removed");
}

/* Twenty at once, as `infra up` of many projects: nothing is lost. */
static void together(void)
{
	AUTO_JSN *now = NULL;
	int bad = 0, status;

	for (int i = 0; i < 20; i++)
		if (fork() == 0) {
			char key[32], id[] = "x";
			struct infra_record r = { .id = id, .managed = true };

			ignore_result(str_format(key, sizeof(key), "p%d/s", i));
			_exit(infra_record_put(key, RES_BUCKET, &r, NULL) < 0);
		}
	while (wait(&status) > 0)
		bad += status != 0;
	ok_int(bad, 0, "all have written");
	now = cJSON_Parse(file());
	ok_int(cJSON_GetArraySize(jsn_get(now, "stacks")), 20, "and all are there");
}

static void locks(void)
{
	struct err e = ERR_INIT;
	int a = -1, b = -1;

	ok_int(infra_stack_lock("p/s", &a, NULL), 0, "a stack is locked");
	ok(infra_stack_lock("p/s", &b, &e) < 0 && e.code == ERR_CONFLICT, "once");
	ok_int(infra_stack_lock("p/t", &b, NULL), 0, "another one is free");
	fd_close(&a);
	fd_close(&b);
	ok_int(infra_stack_lock("p/s", &a, NULL), 0, "and it again");
	fd_close(&a);
}

int main(void)
{
	ignore_result(str_format(dir, sizeof(dir), "/tmp/test_record.XXXXXX"));
	ok(mkdtemp(dir), "a folder");
	ignore_result(str_format(path, sizeof(path), "%s/infra-state.json", dir));
	setenv("AGENT_SANDBOX_INFRA_STATE", path, 1);
	python_to_us();
	us_to_python();
	damaged();
	together();
	locks();
	ok_int(fd_remove_tree(dir), 0, "removed");
	return tap_done();
}
