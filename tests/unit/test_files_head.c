/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agentd/routes_files_head.h"

#include <errno.h>
#include <stdlib.h>

#include "../../agentd/fsop.h"
#include "../lib/tap.h"

/* LINK: agentd/routes_files_head.c agentd/fsop.c */

static void test_range(void)
{
	static const struct {
		const char *field;
		uint64_t size;
		int ret;
		uint64_t first, len;
	} t[] = {
		{ NULL, 10, 0, 0, 0 },
		{ "", 10, 0, 0, 0 },
		{ "bytes", 10, 0, 0, 0 },
		{ "bytes=", 10, 0, 0, 0 },
		{ "bytes=-", 10, 0, 0, 0 },
		{ "bytes=0-9", 10, 1, 0, 10 },
		{ "bytes=0-10", 10, 1, 0, 10 },
		{ "bytes=9-", 10, 1, 9, 1 },
		{ "bytes=10-", 10, -ERANGE, 0, 0 },
		{ "bytes=-3", 10, 1, 7, 3 },
		{ "bytes=-30", 10, 1, 0, 10 },
		{ "bytes=-0", 10, -ERANGE, 0, 0 },
		{ "bytes=0-", 0, -ERANGE, 0, 0 },
		{ "bytes=-1", 0, -ERANGE, 0, 0 },
		{ "bytes=2-1", 10, 0, 0, 0 },
		{ "bytes=1-2,4-5", 10, 0, 0, 0 },
		{ "bytes=1-2 ", 10, 0, 0, 0 },
		{ "bytes=+1-2", 10, 0, 0, 0 },
		{ "bytes=0-18446744073709551615", 10, 1, 0, 10 },
		{ "bytes=18446744073709551616-", 10, -ERANGE, 0, 0 },
		{ "bytes=-18446744073709551616", 10, 1, 0, 10 },
		{ "bytes=0-", UINT64_MAX, 1, 0, UINT64_MAX },
		{ "Bytes=1-1", 10, 1, 1, 1 },
		{ "items=1-1", 10, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		uint64_t first = 0, len = 0;
		int r = files_range(t[i].field, t[i].size, &first, &len);

		ok(r == t[i].ret && first == t[i].first && len == t[i].len, "%s of %llu: %d",
		   t[i].field ? t[i].field : "(none)", (unsigned long long)t[i].size, r);
	}
}

static void test_etag(void)
{
	struct stat st = { .st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = { 4, 5 } };
	struct stat most = { .st_dev = (dev_t)-1,
			     .st_ino = (ino_t)-1,
			     .st_size = -1,
			     .st_mtim = { -1, 999999999 } };
	char tag[FILES_ETAG_MAX];

	files_etag(&most, tag);
	ok(tag[0] == '"' && tag[strlen(tag) - 1] == '"', "the longest is complete: %s", tag);
	files_etag(&st, tag);
	ok_str(tag, "\"1-2-3-4.5\"", "an entity tag");
	ok(files_etag_listed("*", tag), "* is any");
	ok(files_etag_listed("\"1-2-3-4.5\"", tag), "itself");
	ok(files_etag_listed("W/\"1-2-3-4.5\"", tag), "weakly");
	ok(files_etag_listed("\"a\",\"1-2-3-4.5\" , \"b\"", tag), "in a list");
	ok(!files_etag_listed("", tag), "nothing is not it");
	ok(!files_etag_listed("\"1-2-3-4\"", tag), "nor a part");
	ok(!files_etag_listed("x\"1-2-3-4.5\"x", tag), "nor within something");
	ok(!files_etag_listed("**", tag), "nor two stars");
}

static void test_date(void)
{
	static const struct {
		int64_t at;
		const char *text;
	} t[] = {
		{ 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" }, /* RFC 9110 */
		{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ -1, "Wed, 31 Dec 1969 23:59:59 GMT" },
		{ 253402300799, "Fri, 31 Dec 9999 23:59:59 GMT" },
		{ 253402300800, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ INT64_MAX, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ INT64_MIN, "Thu, 01 Jan 1970 00:00:00 GMT" },
	};
	char out[FILES_DATE_MAX];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		files_date(t[i].at, out);
		ok_str(out, t[i].text, t[i].text);
	}
}

static void test_disposition(void)
{
	static const char *const t[][2] = {
		{ "a.txt", "attachment; filename=\"a.txt\"" },
		{ "a b", "attachment; filename=\"a b\"" },
		{ "q\"q\\", "attachment; filename=\"q_q_\"; filename*=UTF-8''q%22q%5C" },
		{ "100%", "attachment; filename=\"100_\"; filename*=UTF-8''100%25" },
		{ "\xc3\xa4", "attachment; filename=\"__\"; filename*=UTF-8''%C3%A4" },
		{ "a\r\nX: y",
		  "attachment; filename=\"a__X: y\"; filename*=UTF-8''a%0D%0AX%3A%20y" },
		{ "\xff", "attachment; filename=\"_\"" },
		{ "\x7f", "attachment; filename=\"_\"; filename*=UTF-8''%7F" },
	};
	char out[FILES_DISPOSITION_MAX], name[300];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		files_disposition(t[i][0], out);
		ok_str(out, t[i][1], t[i][1]);
	}
	memset(name, '"', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	files_disposition(name, out);
	ok_int((long long)strlen(out), 22 + 255 + 20 + 3 * 255, "the longest name fits");
}

static void test_paths(void)
{
	struct err e = ERR_INIT;
	char longest[FSOP_PATH_MAX + 2];
	cJSON *o = cJSON_CreateObject();
	char *p = NULL;
	mode_t m = 0;

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[FSOP_PATH_MAX + 1] = '\0';
	ok(fsop_path_check("path", longest, FSOP_PATH_MAX, &e) == 0, "4095 bytes");
	ok(fsop_path_check("path", longest, FSOP_PATH_MAX + 1, &e) == -EINVAL, "not 4096");
	ok(fsop_path_check("path", "/a\0b", 4, &e) == -EINVAL, "no NUL");
	ok(fsop_path_check("from", "~/a", 3, &e) == -EINVAL, "no ~");
	ok(!strncmp(e.msg, "\"from\"", 6), "and the field is named");
	ok(fsop_path_check("path", "", 0, &e) == -EINVAL, "not empty");
	cJSON_AddStringToObject(o, "path_b64", "L_8-"); /* "/\xff>" */
	ok(fsop_path_member(o, "path", &p, &e) == 0 && !strcmp(p, "/\xff>"),
	   "base64 of the other alphabet");
	free(p);
	cJSON_AddStringToObject(o, "path", "/a");
	ok(fsop_path_member(o, "path", &p, &e) < 0 && strstr(e.msg, "both"), "not both");
	ok(fsop_path_member(o, "to", &p, &e) < 0 && strstr(e.msg, "\"to\""),
	   "a missing one is named");
	cJSON_Delete(o);
	ok(fsop_mode("0644", &m) == 0 && m == 0644, "a mode is octal");
	ok(fsop_mode("07777", &m) == 0 && m == 07777, "the largest");
	ok(fsop_mode("10000", &m) < 0 && fsop_mode("8", &m) < 0 && fsop_mode("", &m) < 0 &&
		   fsop_mode("000644", &m) < 0,
	   "what is none");
}

static void test_errors(void)
{
	ok_int(fsop_status(ENOENT), 404, "ENOENT");
	ok_int(fsop_status(EROFS), 403, "EROFS");
	ok_int(fsop_status(ENOTEMPTY), 409, "ENOTEMPTY");
	ok_int(fsop_status(ELOOP), 400, "ELOOP");
	ok_int(fsop_status(ENOSPC), 507, "ENOSPC");
	ok_int(fsop_status(EIO), 500, "EIO");
	ok_int(fsop_status(12345), 500, "anything else");
	ok_str(fsop_errno_name(EXDEV), "EXDEV", "a name");
	ok(fsop_errno_name(12345) == NULL, "no name");
}

int main(void)
{
	test_range();
	test_etag();
	test_date();
	test_disposition();
	test_paths();
	test_errors();
	return tap_done();
}
