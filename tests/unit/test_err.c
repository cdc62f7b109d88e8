/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/err.h"

#include <errno.h>

#include "../lib/tap.h"

static void test_messages(void)
{
	struct err e = ERR_INIT;
	char longest[2 * ERR_MSG_MAX];

	ok_int(err_set(NULL, ERR_IO, ENOENT, "x"), -ENOENT, "a NULL err still gives the errno");
	ok_int(err_set(&e, ERR_NOT_FOUND, ENOENT, "file %s", "a"), -ENOENT,
	       "err_set returns the negative errno");
	ok_str(e.msg, "file a: No such file or directory", "the errno's text is appended");
	ok_int(err_wrap(&e, "reading %d", 7), -ENOENT, "err_wrap keeps the errno");
	ok_str(e.msg, "reading 7: file a: No such file or directory",
	       "err_wrap puts context in front");
	ok_int(err_set(&e, ERR_INTERNAL, 0, "odd"), -EIO, "no errno means -EIO");
	ok_str(e.msg, "odd", "and no text behind the message");
	ok_int(err_set(&e, ERR_INVALID, 0, "a\x1b[31mb\nc\x7f"), -EIO,
	       "control characters are accepted");
	ok_str(e.msg, "a?[31mb?c?", "and defused");
	ok_int(err_set(&e, ERR_INVALID, 0, "%s", "\xff\x9b\xc3(\xe2\x82\xf0\x9f\x98"), -EIO,
	       "bytes that are not UTF-8 are accepted");
	ok_str(e.msg,
	       "??"
	       "?"
	       "(?????" /* no trigraph */,
	       "and defused");
	ok_int(err_set(&e, ERR_INVALID, 0, "%s",
		       "\xc2\x9b"
		       "1m\xc2\x80\xc2\x9f"),
	       -EIO, "C1 controls are accepted");
	ok_str(e.msg, "??1m????", "and defused");
	ok_int(err_set(&e, ERR_INVALID, 0, "%s", "\xc2\xa0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!"),
	       -EIO, "characters beyond ASCII are accepted");
	ok_str(e.msg, "\xc2\xa0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!", "and kept");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ok_int(err_set(&e, ERR_IO, EPERM, "%s", longest), -EPERM, "a message that is too long");
	ok_int(strlen(e.msg), ERR_MSG_MAX - 1, "is cut");
	ok_int(err_wrap(&e, "%s", longest), -EPERM, "context that is too long");
	ok_int(strlen(e.msg), ERR_MSG_MAX - 1, "is cut too");
}

static void test_codes(void)
{
	ok_str(err_code_name(ERR_NOT_FOUND), "not_found", "a code has a name");
	ok_str(err_code_name((enum err_code)999), "unknown", "a code that is none has one too");
	ok_int(err_http_status(ERR_FULL), 429, "a code has a status");
	ok_int(err_http_status((enum err_code) - 1), 500, "a code that is none is 500");
}

int main(void)
{
	test_messages();
	test_codes();
	return tap_done();
}
