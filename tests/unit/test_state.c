/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/state/?*.c */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/state/state.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "tap.h"

static char dir[64], file[128];

static void put(const char *text)
{
	ignore_result(fd_mkdirs(dir, 0700));
	ok_int(fd_replace_file(file, text, strlen(text), 0600), 0, "prepared a state file");
}

static const char *get(void)
{
	static char text[4096];
	AUTO_BUF b;

	buf_init(&b, sizeof(text) - 1);
	ignore_result(fd_read_file(AT_FDCWD, file, &b));
	memcpy(text, b.p ? b.p : "", b.len + 1);
	return text;
}

static struct state_record rec(char *name, char *id)
{
	static char image[] = "base";

	return (struct state_record){ .name = name, .microvm_id = id, .image_arn = image };
}

static int add(const char *name, const char *id)
{
	char n[200], i[64];
	struct state_record r = rec(n, i);

	ignore_result(str_format(n, sizeof(n), "%s", name));
	ignore_result(str_format(i, sizeof(i), "%s", id));
	return state_add(&r, NULL);
}

static int count(void *arg, const struct state_record *r)
{
	(void)r;
	++*(int *)arg;
	return 0;
}

static int how_many(void)
{
	int n = 0;

	return state_each(count, &n, NULL) < 0 ? -1 : n;
}

static void test_basics(void)
{
	struct state_record r;
	struct err e = ERR_INIT;
	struct stat st;

	ok_int(how_many(), 0, "no file is no sandboxes");
	ok_int(state_get("a", &r, &e), -ENOENT, "an unknown name");
	ok(e.code == ERR_NOT_FOUND && strstr(e.msg, file), "is told with the file: %s", e.msg);
	ok_int(add("a", "local-1"), 0, "added");
	ok_int(add("a", "local-2"), -EEXIST, "a second one under the name is refused");
	ok(stat(file, &st) == 0 && (st.st_mode & 07777) == 0600, "the file is 0600");
	ok(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0700, "its folder is 0700");
	ok_str(get(),
	       "{\n  \"sandboxes\": {\n    \"a\": {\n      \"name\": \"a\",\n      \"microvm_id\": \"local-1\",\n"
	       "      \"endpoint\": null,\n      \"image_arn\": \"base\",\n      \"region\": null\n    }\n  }\n}\n",
	       "the form of the file");
	ok_int(state_get("a", &r, NULL), 0, "found again");
	ok_str(r.microvm_id, "local-1", "its id");
	ok(r.endpoint == NULL, "its endpoint is null");
	state_record_done(&r);
	ok_int(state_remove("a", "local-2", NULL), 0, "removing under another id");
	ok_int(how_many(), 1, "does nothing");
	ok_int(state_remove("a", "local-1", NULL), 0, "removing under its id");
	ok_int(how_many(), 0, "does");
	ok_int(state_remove("a", NULL, NULL), 0, "a missing one is fine");
}

static void test_preserved(void)
{
	put("{\"version\": 3, \"sandboxes\": {\"p\": {\"name\": \"p\", \"microvm_id\": \"microvm-1\", \"endpoint\": \"h\","
	    " \"image_arn\": \"arn:x\", \"region\": \"eu\", \"later\": [1, {\"x\": \"\xc3\xa9\"}]}}, \"other\": {}}");
	ok_int(add("q", "local-9"), 0, "added to a file with unknown keys");
	ok(strstr(get(), "\"version\": 3") && strstr(get(), "\"other\": {}"),
	   "keys at the top stay");
	ok(strstr(get(), "\"later\": [") && strstr(get(), "\"x\": \"\xc3\xa9\""),
	   "keys of a record stay");
	ok_int(how_many(), 2, "both are there");
	ok_int(state_remove("q", NULL, NULL), 0, "removed again");
	ok(strstr(get(), "\"later\": ["), "and they still stay");
}

static void test_replace(void)
{
	char name[] = "p", id[] = "microvm-2", image[] = "arn:y", endpoint[] = "host";
	struct state_record r = {
		.name = name, .microvm_id = id, .image_arn = image, .endpoint = endpoint
	};
	struct err e = ERR_INIT;

	put("{\"sandboxes\": {\"p\": {\"microvm_id\": \"aws-1\", \"region\": \"eu\", \"later\": 7}}}");
	ok(state_replace("aws-2", &r, &e) == -ENOENT && e.code == ERR_NOT_FOUND,
	   "under another id: %s", e.msg);
	ok(strstr(get(), "aws-1") != NULL, "nothing is changed");
	ok_int(state_replace("aws-1", &r, NULL), 0, "changed");
	ok(strstr(get(), "\"microvm_id\": \"microvm-2\"") &&
		   strstr(get(), "\"endpoint\": \"host\"") && strstr(get(), "\"region\": null") &&
		   strstr(get(), "\"later\": 7"),
	   "to what was given, and other keys stay");
}

static const char *const corrupt[] = {
	"",
	"{",
	"[]",
	"null",
	"{} x",
	"\"sandboxes\"",
	"{\"sandboxes\": []}",
	"{\"sandboxes\": {\"a\": 1}}",
	"{\"sandboxes\": {\"a\": {}}}",
	"{\"sandboxes\": {\"a\": {\"microvm_id\": 5}}}",
	"{\"sandboxes\": {\"a\": {\"microvm_id\": \"x\", \"endpoint\": 5}}}",
	"{\"sandboxes\": {\"a\": {\"microvm_id\": \"\xff\"}}}",
};

static void test_corrupt(void)
{
	for (size_t i = 0; i < ARRAY_LEN(corrupt); i++) {
		struct err e = ERR_INIT;
		struct state_record r;
		char n[] = "new", id[] = "local-1";
		struct state_record fresh = rec(n, id);

		put(corrupt[i]);
		ok(state_get("a", &r, &e) < 0 && e.code == ERR_INVALID && strstr(e.msg, file),
		   "damage %zu is told with the path: %s", i, e.msg);
		ok(state_add(&fresh, NULL) < 0, "nothing is added to it");
		ok(state_remove("a", NULL, NULL) < 0, "nothing is removed from it");
		ok_str(get(), corrupt[i], "it is left as it was");
	}
}

/* 8 processes add and remove 25 names each, and each leaves one: nothing may be lost. */
static void test_concurrent(void)
{
	enum { WRITERS = 8, ROUNDS = 25 };
	int bad = 0, status;

	put("{}");
	for (int w = 0; w < WRITERS; w++) {
		if (fork() == 0) {
			char name[32];

			for (int i = 0; i < ROUNDS; i++) {
				ignore_result(str_format(name, sizeof(name), "w%d-%d", w, i));
				if (add(name, "local-1") < 0 ||
				    (i && state_remove(name, "local-1", NULL) < 0))
					_exit(1);
			}
			_exit(0);
		}
	}
	for (int w = 0; w < WRITERS; w++)
		bad += wait(&status) < 0 || status != 0;
	ok_int(bad, 0, "every writer succeeded");
	ok_int(how_many(), WRITERS, "nothing was lost between them");
}

static void test_names(void)
{
	static const char *const good[] = { "a", "A.b_c-9", "0", "asb-run-01234567" };
	static const char *const wrong[] = { "",    ".",	"-a",	 "_a", "a/b", "a b",
					     "a\n", "\xc3\xa9", "a\x7f", "..", "a:b" };
	char longest[131];
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok_int(state_check_name(good[i], NULL), 0, good[i]);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ok(state_check_name(wrong[i], &e) == -EINVAL && e.code == ERR_USAGE, "refused: %s",
		   e.msg);
	memset(longest, 'x', sizeof(longest));
	longest[128] = '\0';
	ok_int(state_check_name(longest, NULL), 0, "128 bytes");
	longest[128] = 'x';
	longest[129] = '\0';
	ok_int(state_check_name(longest, NULL), -EINVAL, "129 bytes");
}

static void test_where(void)
{
	const char *d = NULL;
	char want[160];
	struct err e = ERR_INIT;

	unsetenv("AGENT_SANDBOX_STATE");
	unsetenv("HOME");
	ok(state_dir(&d, &e) < 0 && strstr(e.msg, "HOME"), "no HOME: %s", e.msg);
	setenv("HOME", "relative", 1);
	ok(state_dir(&d, &e) < 0 && strstr(e.msg, "HOME"), "a relative HOME: %s", e.msg);
	ignore_result(str_format(want, sizeof(want), "%s/with space", dir));
	setenv("HOME", want, 1);
	ok_int(add("a", "local-1"), 0, "a HOME with a space");
	ok_int(state_dir(&d, NULL), 0, "its folder");
	ignore_result(str_format(want, sizeof(want), "%s/with space/.agent_sandbox", dir));
	ok_str(d, want, "is .agent_sandbox below it");
	setenv("HOME", "/proc", 1);
	ok(state_dir(&d, &e) < 0 && strstr(e.msg, "/proc/.agent_sandbox"), "an unwritable HOME: %s",
	   e.msg);
	ok_int(how_many(), 0, "can still be read from");
}

int main(void)
{
	char base[] = "/tmp/asb-state.XXXXXX";

	if (!mkdtemp(base))
		return 1;
	ignore_result(str_format(dir, sizeof(dir), "%s/d", base));
	ignore_result(str_format(file, sizeof(file), "%s/state.json", dir));
	setenv("AGENT_SANDBOX_STATE", file, 1);
	test_basics();
	test_preserved();
	test_replace();
	test_corrupt();
	test_concurrent();
	test_names();
	test_where();
	ignore_result(fd_remove_tree(base));
	return tap_done();
}
