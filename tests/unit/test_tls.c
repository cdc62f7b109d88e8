/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/net/tls.c */
#include <string.h>
#include <unistd.h>

#include "host/net/tls.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "tap.h"

/* A root that was made for this test, valid or not: only what it says is decoded. */
#define P256                                                                 \
	"-----BEGIN CERTIFICATE-----\n"                                      \
	"MIIBhzCCAS2gAwIBAgIUGdu1fu5WKivHnUEGvrf8HNFA7v0wCgYIKoZIzj0EAwIw\n" \
	"GDEWMBQGA1UEAwwNYXNiIHRlc3Qgcm9vdDAgFw0yNjExMzAwMDM4MTBaGA8yMTI2\n" \
	"MTEwNjAwMzgxMFowGDEWMBQGA1UEAwwNYXNiIHRlc3Qgcm9vdDBZMBMGByqGSM49\n" \
	"AgEGCCqGSM49AwEHA0IABNH+LFpg7LIAMrtgSNfT8/w1V8bo7CqqZbk17kqZxYrZ\n" \
	"3uAPJ402KHd7LVBJY/PeLOE62jQvPEu5WFVlYwsNJsejUzBRMB0GA1UdDgQWBBRK\n" \
	"KjTRYTT758FJU/Bxkfc4KfBFrzAfBgNVHSMEGDAWgBRKKjTRYTT758FJU/Bxkfc4\n" \
	"KfBFrzAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCICFbtJa8DBVW\n" \
	"XMzi0xmWRJsl0ei5nD1kFQvzReiSX72AAiEA0widDDUs7csM80UiCJ6G95TJ/jNE\n" \
	"T4P3T/W1eT9kd18=\n"                                                 \
	"-----END CERTIFICATE-----\n"

static char dir[] = "/tmp/asb-tls.XXXXXX", file[80];

static const char *put(const char *text)
{
	static int n;

	ignore_result(str_format(file, sizeof(file), "%s/%d.pem", dir, n++));
	ok_int(fd_replace_file_lazy(file, text, strlen(text), 0600), 0, "prepared a bundle");
	return file;
}

static void test_good(void)
{
	struct tls *t = NULL, *again = NULL;
	struct err e = ERR_INIT;

	ok_int(tls_trust(put("noise before\n" P256 "noise between\n" P256), &t, &e), 0,
	       "a bundle of two");
	ok_int(t ? tls_anchors(t) : 0, 2, "both are anchors");
	ok_int(tls_trust(file, &again, &e), 0, "asked for again");
	ok(t == again, "it is not decoded a second time");
	ok_int(tls_trust(put("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" P256),
			 &t, &e),
	       0, "one that is no certificate is left out");
	ok_int(tls_anchors(t), 1, "the other stays");
}

static void test_bad(void)
{
	static const char *const bad[] = {
		"",
		"no certificate here\n",
		"-----BEGIN CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\n====\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
		"-----END CERTIFICATE----------BEGIN CERTIFICATE-----",
	};
	struct tls *t = NULL;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e = (struct err)ERR_INIT;
		ok(tls_trust(put(bad[i]), &t, &e) < 0 && e.code == ERR_INVALID &&
			   strstr(e.msg, file),
		   "refused by its name: %s", e.msg);
	}
	ok(tls_trust("/nonexistent/bundle.pem", &t, &e) < 0 && e.code == ERR_IO, "missing: %s",
	   e.msg);
}

static void test_cuts(void)
{
	char text[] = P256;
	struct tls *t = NULL;
	int wrong = 0;

	for (size_t n = 0; n < sizeof(text) - 30; n++) {
		ignore_result(str_format(file, sizeof(file), "%s/cut%zu.pem", dir, n));
		ignore_result(fd_replace_file_lazy(file, text, n, 0600));
		wrong += tls_trust(file, &t, NULL) == 0;
	}
	ok_int(wrong, 0, "a file that is cut anywhere is no bundle");
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	test_good();
	test_bad();
	test_cuts();
	ignore_result(fd_remove_tree(dir));
	return tap_done();
}
