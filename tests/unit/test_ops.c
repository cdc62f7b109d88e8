/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/aws.c host/aws/arn.c host/aws/call.c host/aws/creds*.c host/aws/endpoint.c host/aws/fetch.c host/aws/xml.c
   host/aws/ini.c host/aws/ops.c host/aws/retry.c host/aws/settings.c host/aws/sigv4.c host/aws/table_*.c host/net/?*.c host/backend.c */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "host/aws/creds_int.h"
#include "host/aws/ops.h"
#include "host/aws/retry.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "tap.h"

/* --- the tables against the service models --- */

static cJSON *load(const char *path)
{
	AUTO_BUF b;
	cJSON *j;

	buf_init(&b, 4 << 20);
	ignore_result(fd_read_file(AT_FDCWD, path, &b));
	j = jsn_parse(b.p ? b.p : "", b.len, NULL);
	ok(j, "%s is there", path);
	return j;
}

static const cJSON *get(const cJSON *o, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(o, name);
}

static const char *text(const cJSON *o, const char *name)
{
	const char *s = cJSON_GetStringValue(get(o, name));

	return s ? s : "";
}

static int differences; /* of the operation under test */

static void differ(const char *where, const char *what)
{
	printf("# %s: %s\n", where, what);
	differences++;
}

static int64_t limit(const cJSON *model, const char *name, int64_t none)
{
	const cJSON *j = get(model, name);

	return j ? (int64_t)cJSON_GetNumberValue(j) : none;
}

static enum shape_type type_of(const cJSON *model)
{
	static const struct {
		const char *name;
		enum shape_type type;
	} types[] = { { "string", SHAPE_STRING },  { "integer", SHAPE_NUMBER },
		      { "long", SHAPE_NUMBER },	   { "boolean", SHAPE_BOOL },
		      { "timestamp", SHAPE_TIME }, { "list", SHAPE_LIST },
		      { "map", SHAPE_MAP },	   { "structure", SHAPE_STRUCT } };

	if (cJSON_IsTrue(get(model, "union")))
		return SHAPE_UNION;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i].name, text(model, "type")))
			return types[i].type;
	return SHAPE_STRING;
}

static bool is_required(const cJSON *model, const char *name)
{
	const cJSON *r;

	cJSON_ArrayForEach(r, get(model, "required")) if (!strcmp(cJSON_GetStringValue(r),
								  name)) return true;
	return false;
}

static void compare(const cJSON *shapes, const char *name, const struct shape *s);

static void compare_members(const cJSON *shapes, const char *name, const cJSON *model,
			    const struct shape *s)
{
	static const char *const places[] = { "", "uri", "querystring", "header" };
	const cJSON *mm;
	int n = 0;

	for (const struct member *m = s->members; m->name; m++)
		n++;
	if (n != cJSON_GetArraySize(get(model, "members")))
		differ(name, "number of members");
	cJSON_ArrayForEach(mm, get(model, "members"))
	{
		const char *wire = get(mm, "locationName") ? text(mm, "locationName") : mm->string;
		const struct member *m = s->members;

		while (m->name && strcmp(m->name, wire) != 0)
			m++;
		if (!m->name) {
			differ(name, mm->string);
			continue;
		}
		if (m->required != is_required(model, mm->string) ||
		    m->token != !!cJSON_IsTrue(get(mm, "idempotencyToken")) ||
		    strcmp(places[m->place], text(mm, "location")) != 0)
			differ(name, wire);
		compare(shapes, text(mm, "shape"), m->shape);
	}
}

static void compare(const cJSON *shapes, const char *name, const struct shape *s)
{
	const cJSON *model = get(shapes, name), *word;
	int n = 0;

	if (!model || s->type != type_of(model)) {
		differ(name, "type");
		return;
	}
	if (s->min != limit(model, "min", s->type == SHAPE_NUMBER ? INT64_MIN : 0) ||
	    s->max != limit(model, "max", INT64_MAX))
		differ(name, "limits");
	cJSON_ArrayForEach(word, get(model, "enum"))
	{
		if (!s->words || !s->words[n] ||
		    strcmp(s->words[n], cJSON_GetStringValue(word)) != 0)
			differ(name, "its values");
		n++;
	}
	if (s->words && s->words[n])
		differ(name, "a value too many");
	if (s->type == SHAPE_LIST)
		compare(shapes, text(get(model, "member"), "shape"), s->item);
	if (s->type == SHAPE_MAP)
		compare(shapes, text(get(model, "value"), "shape"), s->item);
	if (s->type == SHAPE_STRUCT || s->type == SHAPE_UNION)
		compare_members(shapes, name, model, s);
}

static void test_op(const cJSON *model, const struct aws_op *op)
{
	const cJSON *o = get(get(model, "operations"), op->name), *http = get(o, "http");

	differences = 0;
	if (!o || strcmp(op->method, text(http, "method")) != 0 ||
	    strlen(op->path) != strcspn(text(http, "requestUri"), "?") ||
	    strncmp(op->path, text(http, "requestUri"), strlen(op->path)) != 0 ||
	    op->ok != (int)limit(http, "responseCode", 200))
		differ(op->name, "method, path or status");
	compare(get(model, "shapes"), text(get(o, "input"), "shape"), op->in);
	if (!op->out != !get(o, "output"))
		differ(op->name, "whether it has an output");
	else if (op->out)
		compare(get(model, "shapes"), text(get(o, "output"), "shape"), op->out);
	ok_int(differences, 0, op->name);
}

static void test_models(void)
{
	AUTO_JSN *microvms = load("tests/aws/models/lambda-microvms.json");
	AUTO_JSN *core = load("tests/aws/models/lambda-core.json");

	ok_int(cJSON_GetArraySize(get(microvms, "operations")), OP_MICROVMS_COUNT, "24 operations");
	ok_int(cJSON_GetArraySize(get(core, "operations")), OP_COUNT - OP_MICROVMS_COUNT,
	       "and 5 of connectors");
	for (int i = 0; i < OP_COUNT; i++)
		test_op(i < OP_MICROVMS_COUNT ? microvms : core, ops_of(i));
	ok_str(ops_of(OP_RUN_MICROVM)->name, "RunMicrovm", "the names stand for their operations");
	ok_str(ops_of(OP_GET_MICROVM)->name, "GetMicrovm", "so does this");
	ok_str(ops_of(OP_UPDATE_MICROVM_IMAGE_VERSION)->name, "UpdateMicrovmImageVersion",
	       "and the last");
	ok_str(ops_of(OP_UPDATE_NETWORK_CONNECTOR)->name, "UpdateNetworkConnector", "of both");
}

/* --- recorded answers --- */

static void test_recorded(void)
{
	AUTO_JSN *all = load("tests/vectors/lambda-microvms.json");
	const cJSON *one;
	int seen = 0;

	cJSON_ArrayForEach(one, all)
	{
		struct err e = ERR_INIT;
		int status = (int)limit(get(one, "meta"), "status", 200);

		for (int i = 0; i < OP_COUNT && status < 300; i++)
			if (!strcmp(ops_of(i)->name, text(one, "operation"))) {
				ok(ops_check(ops_of(i), get(one, "body"), &e) == 0, "%s is read %s",
				   one->string, e.msg);
				seen++;
			}
	}
	ok(seen > 50, "%d recorded answers", seen);
}

static void test_answers(void)
{
	static const struct {
		enum aws_op_id id;
		const char *json;
		int good;
	} table[] = {
		{ OP_GET_MICROVM, "{}", 1 },
		{ OP_GET_MICROVM, "{\"state\":null,\"new\":[1,{\"x\":2}]}", 1 },
		{ OP_GET_MICROVM, "{\"state\":\"NEW_STATE\",\"startedAt\":1.5}", 1 },
		{ OP_GET_MICROVM, "{\"state\":7}", 0 },
		{ OP_GET_MICROVM, "{\"idlePolicy\":{\"maxIdleDurationSeconds\":\"60\"}}", 0 },
		{ OP_GET_MICROVM, "{\"egressNetworkConnectors\":[1]}", 0 },
		{ OP_GET_MICROVM, "[]", 0 },
		{ OP_LIST_MICROVMS, "{\"items\":[{\"state\":\"RUNNING\"},null]}", 1 },
		{ OP_LIST_MICROVMS, "{\"items\":{}}", 0 },
		{ OP_CREATE_MICROVM_AUTH_TOKEN, "{\"authToken\":{\"X-aws-proxy-auth\":\"t\"}}", 1 },
		{ OP_CREATE_MICROVM_AUTH_TOKEN, "{\"authToken\":{\"X-aws-proxy-auth\":7}}", 0 },
		{ OP_CREATE_MICROVM_AUTH_TOKEN, "{\"authToken\":[]}", 0 },
	};
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		AUTO_JSN *j = jsn_parse(table[i].json, strlen(table[i].json), NULL);

		ok_int(ops_check(ops_of(table[i].id), j, NULL) == 0, table[i].good, table[i].json);
	}
	ok(ops_check(ops_of(OP_GET_MICROVM), NULL, &e) < 0 && e.code == ERR_INTERNAL,
	   "no answer: %s", e.msg);
	ok_int(ops_check(ops_of(OP_TAG_RESOURCE), NULL, NULL), 0,
	       "no answer where there is to be none");
}

/* --- requests --- */

#define ARN	    "arn:aws:lambda:us-east-1:123456789012:microvm-image:my-image"
#define IN_PATH_ARN "arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Amicrovm-image%3Amy-image"

static void test_requests(void)
{
	static const struct {
		enum aws_op_id id;
		const char *params, *path, *query, *body;
	} table[] = {
		{ OP_SUSPEND_MICROVM, "{\"microvmIdentifier\":\"microvm-1\"}",
		  "/2025-09-09/microvms/microvm-1/suspend", "", "" },
		{ OP_GET_MICROVM_IMAGE_VERSION,
		  "{\"imageIdentifier\":\"" ARN "\",\"imageVersion\":\"1.0\"}",
		  "/2025-09-09/microvm-images/" IN_PATH_ARN "/versions/1.0", "", "" },
		{ OP_LIST_MICROVMS,
		  "{\"nextToken\":\"AbC-_9==\",\"maxResults\":50,\"imageIdentifier\":\"" ARN "\"}",
		  "/2025-09-09/microvms",
		  "maxResults=50&nextToken=AbC-_9%3D%3D&imageIdentifier=" IN_PATH_ARN, "" },
		{ OP_UNTAG_RESOURCE, "{\"Resource\":\"" ARN "\",\"tagKeys\":[\"a\",\"b c\"]}",
		  "/2017-03-31/tags/" IN_PATH_ARN, "tagKeys=a&tagKeys=b%20c", "" },
		{ OP_UPDATE_MICROVM_IMAGE_VERSION,
		  "{\"imageIdentifier\":\"i\",\"imageVersion\":\"1.0\",\"status\":\"INACTIVE\"}",
		  "/2025-09-09/microvm-images/i/versions/1.0", "", "{\"status\":\"INACTIVE\"}" },
		{ OP_CREATE_MICROVM_AUTH_TOKEN,
		  "{\"microvmIdentifier\":\"m\",\"expirationInMinutes\":60,\"allowedPorts\":[{\"port\":8080},{\"allPorts\":{}}]}",
		  "/2025-09-09/microvms/m/auth-token", "",
		  "{\"expirationInMinutes\":60,\"allowedPorts\":[{\"port\":8080},{\"allPorts\":{}}]}" },
		{ OP_LIST_NETWORK_CONNECTORS, "{\"State\":\"ACTIVE\"}",
		  "/2026-04-04/network-connectors", "State=ACTIVE", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		AUTO_JSN *p = jsn_parse(table[i].params, strlen(table[i].params), NULL);
		struct ops_request q;
		struct err e = ERR_INIT;

		ok(ops_build(ops_of(table[i].id), p, &q, &e) == 0, "%s %s",
		   ops_of(table[i].id)->name, e.msg);
		ok_str(q.path.p, table[i].path, "its path");
		ok_str(q.query.p ? q.query.p : "", table[i].query, "its query");
		ok_str(q.body.p ? q.body.p : "", table[i].body, "its body");
		ops_request_done(&q);
	}
}

static void test_refused(void)
{
	static const struct {
		enum aws_op_id id;
		const char *params, *names;
	} table[] = {
		{ OP_RUN_MICROVM, "{}", "imageIdentifier" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":\"x\",\"cpus\":1}", "cpus" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":7}", "imageIdentifier" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":null}", "imageIdentifier" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":\"\"}", "imageIdentifier" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":\"x\",\"maximumDurationInSeconds\":28801}",
		  "28801" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":\"x\",\"maximumDurationInSeconds\":1.5}",
		  "integer" },
		{ OP_RUN_MICROVM,
		  "{\"imageIdentifier\":\"x\",\"idlePolicy\":{\"maxIdleDurationSeconds\":60}}",
		  "suspendedDurationSeconds" },
		{ OP_RUN_MICROVM,
		  "{\"imageIdentifier\":\"x\",\"idlePolicy\":{\"maxIdleDurationSeconds\":59,\"suspendedDurationSeconds\":0,"
		  "\"autoResumeEnabled\":true}}",
		  "maxIdleDurationSeconds: 59" },
		{ OP_RUN_MICROVM, "{\"imageIdentifier\":\"x\",\"logging\":{}}", "logging" },
		{ OP_RUN_MICROVM,
		  "{\"imageIdentifier\":\"x\",\"logging\":{\"disabled\":{},\"cloudWatch\":{}}}",
		  "logging" },
		{ OP_RUN_MICROVM,
		  "{\"imageIdentifier\":\"x\",\"ingressNetworkConnectors\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\","
		  "\"8\",\"9\",\"10\",\"11\"]}",
		  "11 entries" },
		{ OP_GET_MICROVM, "{\"microvmIdentifier\":\"a/b\"}", "microvmIdentifier" },
		{ OP_GET_MICROVM, "{\"microvmIdentifier\":\"..\"}", "microvmIdentifier" },
		{ OP_GET_MICROVM, "{\"microvmIdentifier\":\".\"}", "microvmIdentifier" },
		{ OP_UPDATE_MICROVM_IMAGE_VERSION,
		  "{\"imageIdentifier\":\"i\",\"imageVersion\":\"1\",\"status\":\"active\"}",
		  "status" },
		{ OP_CREATE_MICROVM_AUTH_TOKEN,
		  "{\"microvmIdentifier\":\"m\",\"expirationInMinutes\":60,\"allowedPorts\":[]}",
		  "allowedPorts" },
		{ OP_CREATE_MICROVM_AUTH_TOKEN,
		  "{\"microvmIdentifier\":\"m\",\"expirationInMinutes\":60,\"allowedPorts\":[{\"port\":0}]}",
		  "allowedPorts[0].port" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		AUTO_JSN *p = jsn_parse(table[i].params, strlen(table[i].params), NULL);
		struct ops_request q;
		struct err e = ERR_INIT;

		ok(ops_build(ops_of(table[i].id), p, &q, &e) == -EIO && e.code == ERR_INVALID &&
			   strstr(e.msg, table[i].names),
		   "refused: %s", e.msg);
		ops_request_done(&q);
	}
}

static void payload(size_t n, int good)
{
	AUTO_JSN *p = cJSON_CreateObject();
	struct ops_request q;
	char *big = calloc(1, n + 1);

	memset(big, 'x', n);
	memcpy(big, "\xc3\xa4", 2); /* bytes count, not characters */
	ok(jsn_add_str(p, "imageIdentifier", "x") && jsn_add_str(p, "runHookPayload", big),
	   "prepared");
	ok_int(ops_build(ops_of(OP_RUN_MICROVM), p, &q, NULL) == 0, good,
	       "a payload of that many bytes");
	ops_request_done(&q);
	free(big);
}

static void test_uuid(void)
{
	char a[OPS_UUID_LEN + 1], b[OPS_UUID_LEN + 1];

	ok_int(ops_uuid(a, NULL) | ops_uuid(b, NULL), 0, "two UUIDs");
	ok(strcmp(a, b) != 0 && strlen(a) == 36 && a[14] == '4' && strchr("89ab", a[19]), "%s", a);
}

static void test_time(void)
{
	static const char *const good[] = { "2026-11-29T12:00:00Z", "2026-11-29T12:00:00UTC",
					    "2026-11-29T12:00:00.123Z", "2026-11-29T14:30:00+02:30",
					    "2026-11-29T11:00:00-01:00" };
	static const char *const bad[] = { "",
					   "2026-11-29",
					   "2026-11-29T12:00:00",
					   "2026-11-29T12:00:00+1",
					   "2026-11-29T12:00:00Zx",
					   "2026-11-29T12:00:00+02:30x" };
	int64_t t;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(creds_time(good[i], &t) == 0 && t == 1795953600, "%s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(creds_time(bad[i], &t) == -EINVAL, "no time: '%s'", bad[i]);
}

/* --- retries --- */

static void test_retry(void)
{
	static const struct {
		int status;
		const char *code;
		int errnum;
		enum retry_what what;
	} table[] = {
		{ 0, "", ECONNREFUSED, RETRY_AGAIN },
		{ 0, "", ECONNRESET, RETRY_AGAIN },
		{ 0, "", ETIMEDOUT, RETRY_AGAIN },
		{ 0, "", EPROTO, RETRY_NOT },
		{ 500, "InternalServerException", 0, RETRY_AGAIN },
		{ 502, "", 0, RETRY_AGAIN },
		{ 500, "InsufficientCapacityException", 0, RETRY_AGAIN },
		{ 501, "", 0, RETRY_NOT },
		{ 429, "ThrottlingException", 0, RETRY_THROTTLE },
		{ 429, "", 0, RETRY_THROTTLE },
		{ 400, "Throttling", 0, RETRY_THROTTLE },
		{ 402, "ServiceQuotaExceededException", 0, RETRY_NOT },
		{ 402, "ThrottlingException", 0, RETRY_NOT },
		{ 403, "ExpiredTokenException", 0, RETRY_CREDS },
		{ 403, "InvalidSignatureException", 0, RETRY_CLOCK },
		{ 403, "AccessDeniedException", 0, RETRY_NOT },
		{ 404, "ResourceNotFoundException", 0, RETRY_NOT },
		{ 409, "ConflictException", 0, RETRY_NOT },
		{ 409, "LimitExceeded", 0, RETRY_NOT },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		ok_int(retry_decide(table[i].status, table[i].code, table[i].errnum), table[i].what,
		       table[i].code[0] ? table[i].code : "without a code");
	ok_int(retry_delay_ns(1, 0, -1), 0, "no delay at best");
	ok(retry_delay_ns(1, UINT32_MAX, -1) <= 1000000000 &&
		   retry_delay_ns(1, UINT32_MAX, -1) > 990000000,
	   "up to a second at first");
	ok(retry_delay_ns(9, UINT32_MAX, -1) <= 20000000000, "and 20 at most");
	ok_int(retry_delay_ns(1, 0, 3), 3000000000, "Retry-After is waited for");
	ok_int(retry_delay_ns(1, 0, 3600), 5000000000, "but not for an hour");
}

int main(void)
{
	test_models();
	test_recorded();
	test_answers();
	test_requests();
	test_refused();
	payload(4096, 1);
	payload(4097, 0);
	test_uuid();
	test_time();
	test_retry();
	return tap_done();
}
