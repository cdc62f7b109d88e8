/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: hooks/payload.c hooks/seed.c hooks/once.c hooks/scripts.c hooks/child.c */

/* LINK: hooks/steps.c hooks/job.c hooks/agent.c hooks/identity.c hooks/portrange.c */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks/job.h"
#include "hooks/once.h"
#include "hooks/payload.h"
#include "hooks/portrange.h"
#include "hooks/scripts.h"
#include "hooks/seed.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "tap.h"

#define S 1000000000LL

/* What the platform allows for each hook, as our images register it. */
static const struct {
	const char *name;
	int64_t limit_ns;
} allowed[] = {
	{ "ready", 60 * S },   { "validate", 15 * S },	{ "run", 5 * S },   { "resume", 5 * S },
	{ "suspend", 10 * S }, { "terminate", 10 * S }, { "sync", 10 * S },
};

static void test_phases(void)
{
	for (size_t i = 0; i < JOB_PHASES; i++) {
		const struct phase *p = &phases[i];
		int64_t worst = p->limit_ns + (p->drains ? 8 * S : 0);
		size_t n = 0;

		while (n <= STEPS_MAX && p->steps[n].fn)
			n++;
		ok_str(p->name, allowed[i].name, "a hook");
		ok(worst < allowed[i].limit_ns, "%s answers within the platform's limit", p->name);
		ok(n > 0 && n <= STEPS_MAX, "%s has steps, and an end", p->name);
	}
	for (size_t i = 0; i < STEPS_MAX && phases[4].steps[i].fn; i++)
		ok(!phases[4].steps[i].must, "suspend is 200 whatever happens to \"%s\"",
		   phases[4].steps[i].name);
	ok_str(phases[2].steps[0].name, "identity", "run begins with the generator");
	ok_str(phases[3].steps[0].name, "identity", "so does resume");
}

static void test_portrange(void)
{
	const struct portrange all = { 32768, 60999 }, small = { 1024, 2047 },
			       none = { 2000, 1000 };
	struct portrange r, least = all, most = all;
	bool parity = true;

	for (uint32_t i = 0; i < 20000; i++) {
		r = portrange_choose(all, i | i << 16);
		most.low = r.low > most.low ? r.low : most.low;
		least.high = r.high < least.high ? r.high : least.high;
		least.low = r.low < least.low ? r.low : least.low;
		most.high = r.high > most.high ? r.high : most.high;
		parity = parity && r.low % 2 == 0 && r.high % 2 == 1;
	}
	ok_int(least.low, 32768, "a range of ports begins where it was");
	ok_int(most.low, 32768 + 7056, "or within its first quarter");
	ok_int(most.high, 60999, "it ends where it did");
	ok_int(least.high, 60999 - 7056, "or within its last quarter");
	ok(parity, "at an even distance");
	r = portrange_choose(all, 7 << 16);
	ok(r.low == 32768 && r.high == 60999 - 6, "one half of a random number is for each end");
	r = portrange_choose(small, UINT32_MAX);
	ok(r.low == 1024 && r.high == 2047, "a small range stays");
	r = portrange_choose(none, UINT32_MAX);
	ok(r.low == 2000 && r.high == 1000, "so does nonsense");
}

static int parse(const char *body, struct payload *p)
{
	struct err e = ERR_INIT;

	return payload_parse(body, strlen(body), p, &e);
}

static void test_payload(void)
{
	struct payload p = PAYLOAD_INIT;
	char *s;

	ok_int(parse("", &p), 0, "no body");
	ok(!p.doc && !p.text && !payload_public(&p), "no payload");
	ok_int(parse(" \n", &p), 0, "white space");
	ok_int(parse("{\"microvmId\":\"m-1\",\"runHookPayload\":\"{\\\"hostname\\\":\\\"box\\\","
		     "\\\"agent_token\\\":\\\"t\\\","
		     "\\\"env\\\":{\\\"A\\\":\\\"\\\"},\\\"entropy\\\":\\\"AQID\\\","
		     "\\\"time\\\":\\\"1767225600.000000001\\\",\\\"k\\\":[]}\"}",
		     &p),
	       0, "everything");
	ok_str(p.microvm_id, "m-1", "id");
	ok_str(p.hostname, "box", "hostname");
	ok_str(p.agent_token, "t", "token");
	ok(p.env && cJSON_GetArraySize(p.env) == 1, "environment");
	ok(p.entropy_len == 3 && !memcmp(p.entropy, "\1\2\3", 3), "entropy");
	ok(p.time_ns == 1767225600 * S + 1, "time to the nanosecond");
	s = payload_public(&p);
	ok(s && !strstr(s, "agent_token") && !strstr(s, "AQID") && strstr(s, "\"k\":[]"),
	   "what scripts see: %s", s ? s : "nothing");
	free(s);
	payload_done(&p);
	ok_int(parse("{\"time\":1767225600.5}", &p), 0, "a number");
	ok(p.time_ns == 1767225600 * S + S / 2, "is a time as well");
	payload_done(&p);
	ok_int(parse("{\"runHookPayload\":\"a \\\"text\\\"\"}", &p), 0, "text");
	ok(!p.doc && p.text, "stays text");
	s = payload_public(&p);
	ok_str(s, "a \"text\"", "byte for byte");
	free(s);
	payload_done(&p);
}

static void test_refused(void)
{
	static const char *const bad[] = {
		"{",
		"[]",
		"null",
		"1",
		"{}{}",
		"{\"microvmId\":7}",
		"{\"runHookPayload\":[]}",
		"{\"runHookPayload\":true}",
		"{\"hostname\":\"a b\"}",
		"{\"hostname\":1}",
		"{\"agent_token\":\"\"}",
		"{\"env\":[]}",
		"{\"env\":{\"A\":null}}",
		"{\"env\":{\"\":\"x\"}}",
		"{\"time\":1e30}",
		"{\"time\":\"1.x\"}",
		"{\"time\":{}}",
		"{\"entropy\":\"A\"}",
		"{\"entropy\":1}",
	};
	char *big = calloc(1, 3 * PAYLOAD_ENTROPY_MAX);
	struct payload p = PAYLOAD_INIT;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(parse(bad[i], &p) < 0 && !p.doc, "refused: %s", bad[i]);
	memset(big, 'A', 3 * PAYLOAD_ENTROPY_MAX - 1);
	memcpy(big, "{\"entropy\":\"", 12);
	memcpy(big + 3 * PAYLOAD_ENTROPY_MAX - 3, "\"}", 2);
	ok(parse(big, &p) < 0, "too much entropy");
	free(big);
}

static void test_seed(void)
{
	unsigned char a[32], b[32], c[64];
	struct seed_part ab[] = { { "ab", 2 }, { "c", 1 } }, a_bc[] = { { "a", 1 }, { "bc", 2 } };
	bool reseeded = false;

	seed_mix(ab, 2, a, sizeof(a));
	seed_mix(ab, 2, b, sizeof(b));
	ok(!memcmp(a, b, sizeof(a)), "the same parts, the same bytes");
	seed_mix(a_bc, 2, b, sizeof(b));
	ok(memcmp(a, b, sizeof(a)) != 0, "where a part ends matters");
	seed_mix(ab, 1, b, sizeof(b));
	ok(memcmp(a, b, sizeof(a)) != 0, "every part matters");
	for (int bit = 0; bit < 16; bit++) {
		unsigned char t[2] = { 'a', 'b' };
		struct seed_part flipped[] = { { t, 2 }, { "c", 1 } };

		t[bit / 8] = (unsigned char)(t[bit / 8] ^ 1 << bit % 8);
		seed_mix(flipped, 2, b, sizeof(b));
		ok(memcmp(a, b, sizeof(a)) != 0, "bit %d matters", bit);
	}
	seed_draw(NULL, 0, a, sizeof(a));
	seed_draw(NULL, 0, b, sizeof(b));
	ok(memcmp(a, b, sizeof(a)) != 0, "two draws differ");
	seed_draw("x", 1, c, sizeof(c));
	ok_int(seed_kernel(c, sizeof(c), &reseeded), 0, "the kernel takes it");
	if (geteuid() == 0)
		ok(reseeded, "and reseeds at once");
	ok_int(seed_kernel(c, 65, &reseeded), -EINVAL, "no more than its buffer");
}

static void test_once(void)
{
	char dir[] = "/tmp/asb-test-hooks.XXXXXX", path[64];
	struct once o, again;
	struct once_digest a, b;

	if (!mkdtemp(dir))
		abort();
	once_load(&o, dir, "i1");
	ok_str(o.done.hex, "", "fresh");
	once_digest("abc", 3, &a);
	once_digest("abd", 3, &b);
	ok_str(a.hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	       "SHA-256 (FIPS 180-4)");
	ok(once_same(&a, &a) && !once_same(&a, &b), "compared");
	ok_int(once_commit(&o, &a), 0, "kept");
	once_load(&again, dir, "i1");
	ok_str(again.done.hex, a.hex, "and found again");
	once_load(&again, dir, "i2");
	ok_str(again.done.hex, "", "but not in another life");
	(void)snprintf(path, sizeof(path), "%s/run.sha256", dir);
	ok_int(fd_replace_file_lazy(path, "zz\n", 3, 0600), 0, "a broken file");
	once_load(&again, dir, "i1");
	ok_str(again.done.hex, "", "counts as none");
	once_load(&again, "/nonexistent", "");
	ok(once_commit(&again, &b) < 0 && once_same(&again.done, &b),
	   "a folder that is not there: kept in memory all the same");
	ok_int(fd_remove_tree(dir), 0, "cleaned up");
}

static void test_names(void)
{
	static const char *const bad[] = { "", ".", "..", ".x", "a~", "a b", "a/b", "ä", "a\\n" };
	char longest[SCRIPTS_NAME_MAX + 1];

	ok(scripts_name_ok("10-a_B.sh"), "a good name");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!scripts_name_ok(bad[i]), "not \"%s\"", bad[i]);
	ok(!scripts_name_ok("a\n"), "nor one with a newline");
	memset(longest, 'a', sizeof(longest));
	longest[SCRIPTS_NAME_MAX] = '\0';
	ok(!scripts_name_ok(longest), "too long");
}

int main(void)
{
	test_phases();
	test_portrange();
	test_payload();
	test_refused();
	test_seed();
	test_once();
	test_names();
	return tap_done();
}
