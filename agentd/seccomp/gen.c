/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/compiler.h"
#include "rules.h"

/*
 * Runs on the build machine: "gen ARCH" prints the header with the filters of ARCH, "gen doc" the lists for the manual, "gen rules" one line a rule for the test. So
 * libseccomp compiles the rules, for both architectures wherever the build runs, and the shipped agentd carries 10 KB of
 * numbers in place of the library.
 *
 * In a profile the answer of a denial that is to be counted is marked with COUNTED: agentd, when it installs the filter, makes a
 * notification of it or, where there can be no listener, takes off the mark.
 */
#define BPF_MAX	  256 /* instructions: agentd has a copy on its stack */
#define CALLS_MAX 128
#define COUNTED	  0x800 /* no errno is as large, and libseccomp takes it for one */

struct abi {
	uint32_t token;
	const char *audit; /* AUDIT_ARCH_ name in seccomp_data */
};

struct target {
	const char *name;
	struct abi native, compat;
};

static const struct target targets[] = {
	{ "x86_64", { SCMP_ARCH_X86_64, "X86_64" }, { SCMP_ARCH_X86, "I386" } },
	{ "aarch64", { SCMP_ARCH_AARCH64, "AARCH64" }, { SCMP_ARCH_ARM, "ARM" } },
};

static NORETURN PRINTF(1, 2) void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fputs("seccomp/gen: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void check(int r, const char *what)
{
	if (r < 0)
		die("%s: %s", what, strerror(-r));
}

/* --- names --- */
struct call {
	char name[32];
};

/* Takes the next name of *LIST; 0 at its end. */
static int next_call(const char **list, struct call *ret)
{
	size_t n = strcspn(*list, " ");

	if (!n)
		return 0;
	if (n >= sizeof(ret->name))
		die("a long name: %s", *list);
	memcpy(ret->name, *list, n);
	ret->name[n] = '\0';
	*list += n + ((*list)[n] == ' ');
	return 1;
}

/* What libseccomp knows the call by: its number here, or one below zero for a call of other architectures. */
static int pseudo(const struct call *c)
{
	int nr = seccomp_syscall_resolve_name(c->name);

	if (nr == __NR_SCMP_ERROR)
		die("libseccomp knows no call %s", c->name);
	return nr;
}

/* -1: the ABI has no such call. */
static int number_in(const struct call *c, uint32_t token)
{
	int nr = seccomp_syscall_resolve_name_arch(token, c->name);

	return nr < 0 ? -1 : nr;
}

/* --- filters --- */
static scmp_filter_ctx new_filter(uint32_t action, uint32_t foreign, const struct target *t,
				  int compat)
{
	scmp_filter_ctx c = seccomp_init(action);

	if (!c)
		die("seccomp_init");
	if (seccomp_arch_native() != t->native.token) {
		check(seccomp_arch_add(c, t->native.token), t->name);
		check(seccomp_arch_remove(c, SCMP_ARCH_NATIVE), "native");
	}
	if (compat)
		check(seccomp_arch_add(c, t->compat.token), t->compat.audit);
	check(seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, foreign), "other architectures");
	check(seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
	return c;
}

static void deny(scmp_filter_ctx c, const struct rule *r)
{
	uint32_t action = SCMP_ACT_ERRNO((uint32_t)r->errnum | (r->quiet ? 0 : COUNTED));
	const char *list = r->calls;
	struct scmp_arg_cmp cmp = { .arg = r->arg };
	struct call call;

	cmp.op = r->when == ABOVE ? SCMP_CMP_GT : SCMP_CMP_MASKED_EQ;
	cmp.datum_a = r->when == ABOVE ? r->value : r->mask;
	cmp.datum_b = r->value;
	while (next_call(&list, &call))
		check(seccomp_rule_add_array(c, action, pseudo(&call), r->when != ALWAYS, &cmp),
		      call.name);
}

static void print_filter(scmp_filter_ctx c, const char *name)
{
	static struct sock_filter code[BPF_MAX + 1];
	FILE *f = tmpfile();
	size_t n;

	if (!f)
		die("no temporary file");
	check(seccomp_export_bpf(c, fileno(f)), name);
	rewind(f);
	n = fread(code, sizeof(code[0]), BPF_MAX + 1, f);
	if (n == 0 || !feof(f) || fclose(f) != 0)
		die("%s has %zu instructions", name, n);
	printf("static const struct sock_filter %s[%zu] = {\n", name, n);
	for (size_t i = 0; i < n; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", code[i].code, code[i].jt, code[i].jf,
		       code[i].k);
	printf("};\n");
	seccomp_release(c);
}

static void print_profile(const struct target *t, enum rule_in in, const char *name)
{
	scmp_filter_ctx c =
		new_filter(SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(EPERM | COUNTED), t, in == IN_BOTH);

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].in == IN_BOTH || in == IN_RESTRICTED)
			deny(c, &rules[i]);
	print_filter(c, name);
}

static void print_worker(const struct target *t)
{
	scmp_filter_ctx c = new_filter(SCMP_ACT_ERRNO(EPERM), SCMP_ACT_KILL_PROCESS, t, 0);

	for (size_t i = 0; i < ARRAY_LEN(worker); i++) {
		const char *list = worker[i].calls;
		struct call call;

		while (next_call(&list, &call))
			check(seccomp_rule_add_array(c, SCMP_ACT_ALLOW, pseudo(&call), 0, NULL),
			      call.name);
	}
	print_filter(c, "filter_worker");
}

/* --- the table by which a denial is named, answered and counted --- */
static struct {
	struct call call;
	int errnum;
} counted[CALLS_MAX];
static size_t counted_len;

/* Only what can be denied on T: `restricted` knows no second ABI. */
static void collect(const struct rule *r, const struct target *t)
{
	const char *list = r->calls;
	struct call call;

	while (next_call(&list, &call)) {
		size_t i = 0;

		if (number_in(&call, t->native.token) < 0 &&
		    (r->in == IN_RESTRICTED || number_in(&call, t->compat.token) < 0))
			continue;
		while (i < counted_len && strcmp(counted[i].call.name, call.name) != 0)
			i++;
		if (i == CALLS_MAX)
			die("too many calls");
		if (i < counted_len && counted[i].errnum != r->errnum)
			die("%s has two answers", call.name);
		counted[i].call = call;
		counted[i].errnum = r->errnum;
		if (i == counted_len)
			counted_len++;
	}
}

static void print_calls(const struct target *t)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (!rules[i].quiet)
			collect(&rules[i], t);
	printf("#define CALLS_LEN %zu\n#define AUDIT_NATIVE AUDIT_ARCH_%s\n#define AUDIT_COMPAT AUDIT_ARCH_%s\n",
	       counted_len, t->native.audit, t->compat.audit);
	printf("static const struct call calls[CALLS_LEN] = {\n");
	for (size_t i = 0; i < counted_len; i++) {
		const struct call *c = &counted[i].call;

		printf("\t{ %d, %d, %d, \"%s\" },\n", number_in(c, t->native.token),
		       number_in(c, t->compat.token), counted[i].errnum, c->name);
	}
	printf("};\n");
}

static void print_header(const struct target *t)
{
	printf("/* Made by agentd/seccomp/gen.c out of rules.h for %s. */\n", t->name);
	printf("#define COUNTED 0x%x\n#define FILTER_MAX %d\n", COUNTED, BPF_MAX);
	print_profile(t, IN_BOTH, "filter_default");
	print_profile(t, IN_RESTRICTED, "filter_restricted");
	print_worker(t);
	print_calls(t);
}

/* --- the manual --- */
static void print_names(const char *list)
{
	const char *between = "";
	struct call call;

	while (next_call(&list, &call)) {
		printf("%s`%s`", between, call.name);
		between = " ";
	}
}

static void print_rules(enum rule_in in)
{
	printf("| call | when | answer | why |\n|---|---|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const struct rule *r = &rules[i];
		const struct rule *same = i > 0 ? r - 1 : NULL;

		if (r->in != in)
			continue;
		/* lines that differ in the value only are one line of the manual */
		if (same && *r->what && same->in == in && *same->what &&
		    !strcmp(same->calls, r->calls)) {
			printf(", %s", r->what);
		} else {
			printf("| ");
			print_names(r->calls);
			printf(" | %s", r->what);
		}
		if (i + 1 < ARRAY_LEN(rules) && *r->what && r[1].in == in && *r[1].what &&
		    !strcmp(r[1].calls, r->calls))
			continue;
		printf(" | %s%s | %s |\n", r->errnum == EPERM ? "EPERM" : "ENOSYS",
		       r->quiet ? ", not counted" : "", r->why);
	}
}

static void print_doc(void)
{
	printf("Denied in `default` and in `restricted`:\n\n");
	print_rules(IN_BOTH);
	printf("\nDenied in `restricted` only:\n\n");
	print_rules(IN_RESTRICTED);
	printf("\nAll that a worker of agentd may call:\n\n| call | for |\n|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(worker); i++) {
		printf("| ");
		print_names(worker[i].calls);
		printf(" | %s |\n", worker[i].why);
	}
}

/* Numbers of the four ABIs in the order of TARGETS, then the rule. */
static void print_line(const char *in, const struct call *c)
{
	printf("%s %s", in, c->name);
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		printf(" %d %d", number_in(c, targets[i].native.token),
		       number_in(c, targets[i].compat.token));
}

static void print_table(void)
{
	static const char *const when[] = { "always", "bits", "above" };
	struct call c;

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const struct rule *r = &rules[i];
		const char *list = r->calls;

		while (next_call(&list, &c)) {
			print_line(r->in == IN_BOTH ? "both" : "restricted", &c);
			printf(" %s %u %llu %llu %d %d\n", when[r->when], r->arg,
			       (unsigned long long)r->mask, (unsigned long long)r->value, r->errnum,
			       r->quiet);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(worker); i++) {
		const char *list = worker[i].calls;

		while (next_call(&list, &c)) {
			print_line("worker", &c);
			printf("\n");
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "doc") || !strcmp(argv[1], "rules"))) {
		argv[1][0] == 'd' ? print_doc() : print_table();
		return fflush(stdout) == 0 ? 0 : 1;
	}
	/* what the kernel of the build machine can do is of no interest */
	check(seccomp_api_set(6), "libseccomp");
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (argc == 2 && !strcmp(argv[1], targets[i].name)) {
			print_header(&targets[i]);
			return fflush(stdout) == 0 ? 0 : 1;
		}
	die("usage: gen x86_64|aarch64|doc|rules");
}
