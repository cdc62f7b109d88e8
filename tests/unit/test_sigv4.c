/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/sigv4.c */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "host/aws/sigv4.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "tap.h"

/* --- the published cases (tests/vectors/sigv4.json) --- */

struct request { /* of a case, cut up in place */
	char text[4096];
	char *method, *path, *query, *body;
	struct sigv4_header heads[SIGV4_HEADERS_MAX];
	size_t heads_len;
};

static void cut_first(struct request *q, char *line)
{
	char *end = strrchr(line, ' ');

	q->method = line;
	q->path = strchr(line, ' ');
	*q->path++ = '\0';
	*end = '\0'; /* a path may hold blanks */
	q->query = strchr(q->path, '?');
	if (q->query)
		*q->query++ = '\0';
}

/* Lines that begin with a blank go on with the header before. */
static void cut_request(struct request *q, const char *text)
{
	char *p, *next;

	*q = (struct request){ .method = NULL };
	snprintf(q->text, sizeof(q->text), "%s", text);
	q->body = strstr(q->text, "\n\n");
	if (q->body) {
		*q->body = '\0';
		q->body += 2;
	}
	for (p = q->text; p && *p; p = next) {
		next = strchr(p, '\n');
		while (next && (next[1] == ' ' || next[1] == '\t'))
			next = strchr(next + 1, '\n');
		if (next)
			*next++ = '\0';
		if (!q->method) {
			cut_first(q, p);
			continue;
		}
		q->heads[q->heads_len].name = p;
		p = strchr(p, ':');
		*p++ = '\0';
		q->heads[q->heads_len++].value = p;
	}
}

static const char *text_of(const cJSON *o, const char *name)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));

	return s ? s : "";
}

static void check_form(const cJSON *c, const char *form, const struct sigv4_signed *g)
{
	char name[64], what[160];

	for (int i = 0; i < 3; i++) {
		static const char *const part[] = { "canonical-request", "string-to-sign",
						    "signature" };
		const char *got[] = { g->canonical.p, g->to_sign.p, g->signature };

		snprintf(name, sizeof(name), "%s-%s", form, part[i]);
		snprintf(what, sizeof(what), "%s: %s", c->string, name);
		ok_str(got[i], text_of(c, name), what);
	}
	snprintf(name, sizeof(name), "%s-signed-request", form);
	ok(strstr(text_of(c, name), form[0] == 'h' ? g->result.p : g->signature),
	   "%s: the request has it", c->string);
}

static void run_case(const cJSON *c)
{
	const cJSON *ctx = cJSON_GetObjectItemCaseSensitive(c, "context");
	const cJSON *cred = cJSON_GetObjectItemCaseSensitive(ctx, "credentials");
	const char *token = text_of(cred, "token");
	struct sigv4_signed g;
	struct request q;
	char hash[65];
	struct tm tm = { 0 };

	cut_request(&q, text_of(c, "request"));
	strptime(text_of(ctx, "timestamp"), "%Y-%m-%dT%H:%M:%SZ", &tm);
	sigv4_hash(q.body ? q.body : "", q.body ? strlen(q.body) : 0, hash);
	struct sigv4 s = {
		.key_id = text_of(cred, "access_key_id"),
		.secret = text_of(cred, "secret_access_key"),
		.token = *token ? token : NULL,
		.region = text_of(ctx, "region"),
		.service = text_of(ctx, "service"),
		.time_s = timegm(&tm),
		.method = q.method,
		.path = q.path,
		.query = q.query,
		.headers = q.heads,
		.headers_len = q.heads_len,
		.payload_hash = hash,
	};
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ctx, "normalize")))
		s.flags |= SIGV4_NOT_NORMAL;
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ctx, "omit_session_token")))
		s.flags |= SIGV4_TOKEN_UNSIGNED;
	ok_int(sigv4_presign(&s, 3600, &g), 0, "signed (query)");
	check_form(c, "query", &g);
	sigv4_done(&g);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ctx, "sign_body")))
		q.heads[s.headers_len++] = (struct sigv4_header){ "x-amz-content-sha256", hash };
	ok_int(sigv4_sign(&s, &g), 0, "signed (header)");
	check_form(c, "header", &g);
	sigv4_done(&g);
}

static void test_published(void)
{
	AUTO_BUF b;
	const cJSON *c;

	buf_init(&b, 1 << 20);
	ok_int(fd_read_file(AT_FDCWD, "tests/vectors/sigv4.json", &b), 0, "the vectors are there");
	AUTO_JSN *all = jsn_parse(b.p, b.len, NULL);
	ok_int(cJSON_GetArraySize(all), 38, "all of them");
	cJSON_ArrayForEach(c, all) run_case(c);
}

/* --- requests as botocore 1.43.67 signs them --- */

#define IMAGE	"arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Amicrovm-image%3Amy-image"
#define VM	"/2025-09-09/microvms/microvm-00000000-0000-3000-8000-000000000001"
#define JSON	"content-type", "application/json"
#define S3_HOST "my-bucket-1.s3.us-west-2.amazonaws.com"

static const struct botocore {
	const char *what, *method, *host, *service, *region, *path, *query, *token, *body;
	struct sigv4_header more[3];
	const char *canonical_hash, *signature;
} botocore[] = {
	{ "1",
	  "GET",
	  NULL,
	  "lambda",
	  "us-east-1",
	  "/2025-09-09/microvm-images/" IMAGE,
	  NULL,
	  NULL,
	  "",
	  { { NULL } },
	  "2fcbe70ee2c857996732dac0b8b34ccce52a047ead10fcd4552d7d16b30e3303",
	  "0de8c9fe4e2909cfd023d9f60eeec8405ff29c7a7b03c815d76d56ebfb70889a" },
	{ "1t",
	  "GET",
	  NULL,
	  "lambda",
	  "us-east-1",
	  "/2025-09-09/microvm-images/" IMAGE,
	  NULL,
	  "SESSIONTOKEN//+==",
	  "",
	  { { NULL } },
	  "2a8e8933ad360be4f384efff0a86a863a3422bc21ff347787b15561a87defb7a",
	  "25f6a3eb3e6727690845099aad522a7ff42148521ef4b24df8f439802d54dc60" },
	{ "2",
	  "GET",
	  NULL,
	  "lambda",
	  "us-east-1",
	  "/2025-09-09/microvms",
	  "maxResults=50&imageIdentifier=" IMAGE "&nextToken=AbC-_9%3D%3D",
	  NULL,
	  "",
	  { { NULL } },
	  "3a02bac70837ed839804916462674c5751598c99bb198279b7f19137fc9811b4",
	  "0cfcacb24c6219db38cd52d8036a58cfaa02c576cf5c641852a20857490a87ab" },
	{ "3",
	  "POST",
	  NULL,
	  "lambda",
	  "us-east-1",
	  VM "/suspend",
	  NULL,
	  NULL,
	  "",
	  { { NULL } },
	  "dd892a9bc3fe7b911915466800fd330ef5d05a0c86acddbe123a11058b64576d",
	  "db2f4fd884796e4ef762cd9817426471da9f7bab8148b3097b9940c8a8072537" },
	{ "4",
	  "DELETE",
	  NULL,
	  "lambda",
	  "us-east-1",
	  "/2017-03-31/tags/" IMAGE,
	  "tagKeys=a&tagKeys=b%20c",
	  NULL,
	  "",
	  { { NULL } },
	  "4efd8f712bdf49ef1de6d44782ac2b753c6eb0f340c7de987dbce1aa391f8cbd",
	  "fd4de09a5636e79de520c47923ca5d3b6aea8dd4eee84477089f1c884a44ba05" },
	{ "5",
	  "PATCH",
	  NULL,
	  "lambda",
	  "us-east-1",
	  "/2025-09-09/microvm-images/" IMAGE "/versions/1.0",
	  NULL,
	  NULL,
	  "{\"status\": \"INACTIVE\"}",
	  { { JSON } },
	  "eb4c2e329081f1323b234d612bd890a45e69990ba3071a863fd69fefbb53831f",
	  "33e75a0aa4284b8fa3182720d637dd995f37fd130e71ff5db672eacadb98d91a" },
	{ "6",
	  "POST",
	  NULL,
	  "lambda",
	  "us-east-1",
	  VM "/auth-token",
	  NULL,
	  NULL,
	  "{\"expirationInMinutes\": 60, \"allowedPorts\": [{\"port\": 8080}, {\"range\": {\"startPort\": 9000, "
	  "\"endPort\": 9010}}, {\"allPorts\": {}}]}",
	  { { JSON } },
	  "7ae1e19b126cc3177a76b5d7d696d7d5afeac70966b7ba764590962bb0961e0e",
	  "42759435016b088acf120a14daf9e428a57bc909ed9736b4a536662591217760" },
	{ "7",
	  "PUT",
	  S3_HOST,
	  "s3",
	  "us-west-2",
	  "/images/abc.zip",
	  NULL,
	  NULL,
	  "hello",
	  { { "content-type", "application/zip" } },
	  "4272e61cb594aac4913affa1b70a0654c252e2663cb1997b3d2c3bfd8ef3e320",
	  "fdbdc5275405fa8afe25b51c4bf6d01dd778719695b122b6a5a776c311dfa0ce" },
	{ "8",
	  "GET",
	  S3_HOST,
	  "s3",
	  "us-west-2",
	  "/",
	  "list-type=2&prefix=a%20b%2F&max-keys=1000&continuation-token=x%2F%2B%3D&encoding-type=url",
	  NULL,
	  "",
	  { { NULL } },
	  "e299578cd94de03ef2a96984872bd159632b8ad9b40c9c4bdf219efc28d9f911",
	  "7977299dbbdde1a2d1c9744ed91d529198c315bc9e7de45a8b41760c002ef3c5" },
	{ "9",
	  "POST",
	  "sts.us-west-2.amazonaws.com",
	  "sts",
	  "us-west-2",
	  "/",
	  NULL,
	  NULL,
	  "Action=GetCallerIdentity&Version=2011-06-15",
	  { { "content-type", "application/x-www-form-urlencoded; charset=utf-8" } },
	  "e336b4a62995418d6d2aab4cc741cce03312fd5a6bd8468de92d5200fc8bd4bb",
	  "4ec272ea03172eb022d03f5d21e38d463172a71b0485f3c32105efa5b9a7594e" },
	{ "10",
	  "POST",
	  "logs.us-west-2.amazonaws.com",
	  "logs",
	  "us-west-2",
	  "/",
	  NULL,
	  NULL,
	  "{\"logGroupName\": \"/aws/lambda-microvms/x\", \"startTime\": 1, \"limit\": 100}",
	  { { "content-type", "application/x-amz-json-1.1" },
	    { "X-Amz-Target", "Logs_20140328.FilterLogEvents" } },
	  "345f0044bad309d3682638d9722f7c0738edfb56d4392d810b5f3029d869c702",
	  "e207566d4cd2db7b52b612c81fdc91b01d2473647774fd3dfe2eec6fa5415806" },
	{ "11",
	  "GET",
	  "127.0.0.1:4566",
	  "lambda",
	  "us-east-1",
	  "/base/2025-09-09/microvms/microvm-1",
	  NULL,
	  NULL,
	  "",
	  { { NULL } },
	  "e43cf93858b8ee5d24424cb4ea0e482906177858d9fddec9a4c715531df183f7",
	  "d2e294d9165bad79cf49ae7dd57101a894029095fdc017e35bfc4e3dc7282231" },
	{ "connector",
	  "GET",
	  NULL,
	  "lambda",
	  "us-east-1",
	  "/2026-04-04/network-connectors/arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Anetwork-connector%3Anc-1",
	  NULL,
	  NULL,
	  "",
	  { { NULL } },
	  NULL,
	  "8ae5889377715c2ee51daabbe4cfff2b7dbf0b6c7ac18f6b297612ed13e50e85" },
};

static void test_botocore(const struct botocore *v)
{
	struct sigv4_header heads[8] = { { "Host",
					   v->host ? v->host : "lambda.us-east-1.amazonaws.com" } };
	struct sigv4_signed g;
	char hash[65], what[80];
	struct sigv4 s = { .key_id = "AKIDEXAMPLE",
			   .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
			   .token = v->token,
			   .region = v->region,
			   .service = v->service,
			   .time_s = 1795953600, /* 2026-11-29T12:00:00Z */
			   .method = v->method,
			   .path = v->path,
			   .query = v->query,
			   .headers = heads,
			   .headers_len = 1,
			   .payload_hash = hash };

	sigv4_hash(v->body, strlen(v->body), hash);
	for (size_t i = 0; i < 3 && v->more[i].name; i++)
		heads[s.headers_len++] = v->more[i];
	if (!strcmp(v->service, "s3")) {
		s.flags = SIGV4_PATH_AS_IS;
		heads[s.headers_len++] = (struct sigv4_header){ "X-Amz-Content-SHA256", hash };
	}
	ok_int(sigv4_sign(&s, &g), 0, "signed");
	snprintf(what, sizeof(what), "botocore %s: signature", v->what);
	ok_str(g.signature, v->signature, what);
	if (v->canonical_hash) {
		snprintf(what, sizeof(what), "botocore %s: hash of the canonical request", v->what);
		ok_str(strrchr(g.to_sign.p, '\n') + 1, v->canonical_hash, what);
	}
	ok_str(g.date, "20261129T120000Z", "the date that is sent");
	sigv4_done(&g);
}

/* --- limits --- */

static void test_limits(void)
{
	struct sigv4_header heads[SIGV4_HEADERS_MAX + 1];
	struct sigv4_signed g;
	char query[SIGV4_PARAMS_MAX * 4 + 8] = "";
	struct sigv4 s = { .key_id = "k",
			   .secret = "s",
			   .region = "r",
			   .service = "x",
			   .method = "GET",
			   .path = "",
			   .headers = heads,
			   .headers_len = 1,
			   .payload_hash = "h",
			   .query = query };

	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		heads[i] = (struct sigv4_header){ "host", "h" };
	ok_int(sigv4_sign(&s, &g), 0, "an empty path");
	ok(!strncmp(g.canonical.p, "GET\n/\n\n", 7), "is /");
	sigv4_done(&g);
	for (int i = 0; i <= SIGV4_PARAMS_MAX; i++)
		memcpy(query + i * 4, "a=b&", 5);
	ok_int(sigv4_sign(&s, &g), -EINVAL, "too many parameters");
	sigv4_done(&g);
	query[0] = '\0';
	s.headers_len = ARRAY_LEN(heads);
	ok_int(sigv4_sign(&s, &g), -EINVAL, "too many headers");
	sigv4_done(&g);
	s.headers_len = 1;
	s.time_s = 253402300800; /* the year 10000 */
	ok_int(sigv4_presign(&s, 1, &g), -EINVAL, "a time that does not fit");
	sigv4_done(&g);
	s.time_s = 0;
	snprintf(query, sizeof(query), "%s", "a=%2f&a=%&b&&%zz=+");
	ok_int(sigv4_sign(&s, &g), 0, "a query that is not well-formed");
	ok(strstr(g.canonical.p, "\n%25zz=%2B&a=%25&a=%2F&b=\n"),
	   "each byte is encoded once, sorted by name and value");
	sigv4_done(&g);
}

int main(void)
{
	test_published();
	for (size_t i = 0; i < ARRAY_LEN(botocore); i++)
		test_botocore(&botocore[i]);
	test_limits();
	return tap_done();
}
