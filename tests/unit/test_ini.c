/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/ini.c */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/ini.h"
#include "lib/compiler.h"
#include "tap.h"

static const char config[] = "# a comment\n"
			     "stray = lost\n"
			     "[default]\n"
			     "Region = eu-west-1\r\n"
			     "output: json\n"
			     "s3 =\n"
			     "  Addressing_Style = path\n"
			     "  # still the block\n"
			     "  max_queue_size=1000\n"
			     "role_arn = arn:aws:iam::123456789012:role/x # not a comment\n"
			     "\n"
			     "[profile  work ]\n"
			     "credential_process = /bin/x --a \"b c\"\n"
			     "  --more\n"
			     "sso_session = corp\n"
			     "no delimiter here\n"
			     "\tlost too\n"
			     "[profile 'with space']\n"
			     "region=us-east-1\n"
			     "[work]\n"
			     "region = of no profile\n"
			     "[sso-session corp]\n"
			     "sso_region = us-west-2\n"
			     "[services svc]\n"
			     "lambda_microvms =\n"
			     "  endpoint_url = http://localhost:1\n"
			     "s3 = \n"
			     "  endpoint_url = http://localhost:2\n"
			     "[profile empty]\n"
			     "[broken\n"
			     "region = lost\n"
			     "[default]\n"
			     "region = later\n"
			     "end =";

static void test_config(void)
{
	struct ini i;

	ok_int(ini_parse(&i, INI_CONFIG, config, strlen(config)), 0, "read");
	ok_str(ini_get(&i, INI_PROFILE, "default", "region", NULL), "later", "the later one wins");
	ok_str(ini_get(&i, INI_PROFILE, "default", "output", NULL), "json", "with a colon");
	ok_str(ini_get(&i, INI_PROFILE, "default", "role_arn", NULL),
	       "arn:aws:iam::123456789012:role/x # not a comment",
	       "the first delimiter counts, and no comment behind");
	ok_str(ini_get(&i, INI_PROFILE, "default", "s3", "addressing_style"), "path", "a block");
	ok_str(ini_get(&i, INI_PROFILE, "default", "s3", "max_queue_size"), "1000",
	       "goes on behind a comment");
	ok_str(ini_get(&i, INI_PROFILE, "default", "s3", NULL), "", "its key is empty");
	ok_str(ini_get(&i, INI_PROFILE, "work", "credential_process", NULL),
	       "/bin/x --a \"b c\"\n--more", "a value of two lines");
	ok_str(ini_get(&i, INI_PROFILE, "work", "sso_session", NULL), "corp", "the line behind it");
	ok(!ini_get(&i, INI_PROFILE, "work", "region", NULL),
	   "a section without the word is no profile");
	ok_str(ini_get(&i, INI_PROFILE, "with space", "region", NULL), "us-east-1",
	       "a name in quotes");
	ok_str(ini_get(&i, INI_SSO_SESSION, "corp", "sso_region", NULL), "us-west-2",
	       "an sso-session");
	ok_str(ini_get(&i, INI_SERVICES, "svc", "lambda_microvms", "endpoint_url"),
	       "http://localhost:1", "a service");
	ok_str(ini_get(&i, INI_SERVICES, "svc", "s3", "endpoint_url"), "http://localhost:2",
	       "the next service");
	ok(ini_has(&i, INI_PROFILE, "empty") && !ini_has(&i, INI_PROFILE, "broken"),
	   "which sections there are");
	ok_str(ini_get(&i, INI_PROFILE, "default", "end", NULL), "", "no line feed at the end");
	ok(!ini_get(&i, INI_PROFILE, "default", "stray", NULL),
	   "what is before the first section is left out");
	ini_done(&i);
}

static void test_credentials(void)
{
	static const char text[] =
		"[default]\naws_access_key_id = AK\n[profile x]\na = 1\n[y]\na=2\n";
	struct ini i;

	ok_int(ini_parse(&i, INI_CREDENTIALS, text, strlen(text)), 0, "read");
	ok_str(ini_get(&i, INI_PROFILE, "default", "aws_access_key_id", NULL), "AK", "default");
	ok_str(ini_get(&i, INI_PROFILE, "profile x", "a", NULL), "1",
	       "the word belongs to the name here");
	ok_str(ini_get(&i, INI_PROFILE, "y", "a", NULL), "2", "a bare name");
	ini_done(&i);
}

static void test_hostile(void)
{
	struct ini i;
	char big[4096];
	int bad = 0;

	ok_int(ini_parse(&i, INI_CONFIG, "a\0b", 3), -EINVAL, "a NUL is refused");
	ini_done(&i);
	for (size_t n = 0; n < strlen(config); n++) {
		bad += ini_parse(&i, INI_CONFIG, config + n, strlen(config) - n) != 0;
		ini_done(&i);
		bad += ini_parse(&i, INI_CREDENTIALS, config, n) != 0;
		ini_done(&i);
	}
	ok_int(bad, 0, "cut anywhere it is read");
	for (size_t c = 1; c < 256; c++) {
		memset(big, (int)c, sizeof(big));
		memcpy(big, "[default]\nk=", 12);
		bad += ini_parse(&i, INI_CONFIG, big, sizeof(big)) != 0;
		ini_done(&i);
	}
	ok_int(bad, 0, "any byte");
	ok_int(ini_load(&i, INI_CONFIG, "/nonexistent/config", NULL), 0, "a missing file is empty");
	ini_done(&i);
	ok(ini_load(&i, INI_CONFIG, "/", NULL) < 0, "a folder is an error");
	ini_done(&i);
}

/* LEN bytes of UNIT again and again. */
static int repeated(const char *unit, size_t len)
{
	size_t n = strlen(unit);
	char *text = malloc(len);
	struct ini i;
	int r;

	for (size_t k = 0; k < len; k++)
		text[k] = unit[k % n];
	r = ini_parse(&i, INI_CONFIG, text, len);
	ini_done(&i);
	free(text);
	return r;
}

static void test_caps(void)
{
	ok_int(repeated("# x\n", INI_FILE_MAX), 0, "as long as a file may be");
	ok_int(repeated("# x\n", INI_FILE_MAX + 4), -ENOSPC, "longer than that");
	ok_int(repeated("[a]\n", 16384 * 4), 0, "as many sections as there may be");
	ok_int(repeated("[a]\n", 16385 * 4), -ENOSPC, "one more");
	ok_int(repeated("[a]\nk=v\nl=w\n", 8192 * 12), 0, "as many keys as there may be");
	ok_int(repeated("[a]\nk=v\nl=w\n", 8192 * 12 + 8), -ENOSPC, "one more");
}

int main(void)
{
	test_config();
	test_credentials();
	test_hostile();
	test_caps();
	return tap_done();
}
