/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/dockerfile.c host/aws/dockertext.c host/aws/dockercopy.c host/aws/artefact.c */
#include <string.h>

#include "host/aws/artefact.h"
#include "host/aws/dockerfile.h"
#include "tap.h"

/* What the build of each case is given. */
static const char files[] = "Dockerfile\0app.py\0bin/asb-init\0bin/agentd\0src/deep/x.c\0a b\0";

static bool has(void *arg, const char *path)
{
	return artefact_has(arg, path);
}

/* WANT: what the refusal must contain; NULL = it is fine. */
static const struct {
	const char *text, *want;
} cases[] = {
	{ "FROM a\nCMD x\n", NULL },
	{ "", "there is no FROM" },
	{ "# only\n", "there is no FROM" },
	{ "FROM a\n", "neither ENTRYPOINT nor CMD" },
	{ "\xef\xbb\xbf"
	  "FROM a\nCMD x",
	  NULL },
	{ "FROM amd64/a\nCMD x\n", "Dockerfile:1: MicroVMs are arm64" },
	{ "FROM a\nENV AGENTD_PORT=81\nCMD x\n", "Dockerfile:2: agentd is called on port 8080" },
	/* continued lines */
	{ "FROM a\nRUN a \\\n # in it\n\n  b\nCMD x\n", NULL },
	{ "FROM a\nRUN x=`date`\nCMD x\n", NULL },
	{ "FROM a\nRUN x `\nCMD x\n", NULL },
	{ "# escape=`\nFROM a\nRUN x `\nCMD x\n", "neither ENTRYPOINT nor CMD" },
	{ "# syntax=docker/dockerfile:1\n# Escape = `\nFROM a\nRUN x `\nCMD x\n",
	  "neither ENTRYPOINT nor CMD" },
	{ "FROM a\n# escape=`\nRUN x `\nCMD x\n", NULL },
	{ "FROM a\nRUN echo \\\\\nCMD x\n", NULL },
	{ "FROM a\r\nRUN b \\\r\n  c\r\nCMD x\r\n", NULL },
	/* here-documents */
	{ "FROM a\nRUN <<EOF\nCOPY nothing /\nEOF\nCMD x\n", NULL },
	{ "FROM a\nRUN cat <<A <<'B' >f\nCOPY 1 /\nA\nCOPY 2 /\nB\nCMD x\n", NULL },
	{ "FROM a\nRUN cat <<-A\n\tCOPY 1 /\n\tA\nCMD x\n", NULL },
	{ "FROM a\nRUN cat <<A\n\tA\nCOPY 1 /\nA\nCMD x\n", NULL },
	{ "FROM a\nRUN cat <<A\nA \nCOPY 1 /\nA\nCMD x\n", NULL },
	{ "FROM a\nCOPY <<EOF app.py /etc/\nCOPY nothing /\nEOF\nCMD x\n", NULL },
	{ "FROM a\nCOPY <<EOF nothing /etc/\nx\nEOF\nCMD x\n", "Dockerfile:2: " },
	{ "FROM a\nRUN grep x <<<word\nCMD x\n", NULL },
	{ "FROM a\nRUN echo $((1<<3))\nCMD x\n", NULL },
	{ "FROM a\nRUN echo \"a <<EOF b\"\nCOPY nothing /\nCMD x\n", "Dockerfile:3: " },
	{ "FROM a\nRUN echo \\<<EOF\nCMD x\n", NULL },
	{ "FROM a\nRUN cat <<EOF\nCMD x\n", NULL }, /* it has no end: nobody knows */
	{ "FROM a\nLABEL x=<<EOF y <<EOF\nCOPY nothing /\nCMD x\n", "Dockerfile:3: " },
	/* what is copied */
	{ "FROM a\nCOPY app.py /\nCMD x\n", NULL },
	{ "FROM a\n\ncopy --chown=1:1 app.py  nothing /\nCMD x\n",
	  "Dockerfile:3: what it copies is not in the folder, or left out of the zip: nothing" },
	{ "FROM a\nADD nothing /\nCMD x\n", "nothing" },
	{ "FROM a\nCOPY app.py \\\n  other.py \\\n /\nCMD x\n", "Dockerfile:2: " },
	{ "FROM a\nCOPY bin/ src/deep ./app.py /bin/agentd ../app.py bin/../app.py /x/\nCMD x\n",
	  NULL },
	{ "FROM a\nCOPY . /x\nCOPY / /y\nCOPY ./ /z\nCOPY .. /u\nCMD x\n", NULL },
	{ "FROM a\nCOPY bi /\nCMD x\n", ": bi" },
	{ "FROM a\nCOPY App.py /\nCMD x\n", ": App.py" },
	{ "FROM a\nCOPY src/deep/x.c/y /\nCMD x\n", ": src/deep/x.c/y" },
	{ "FROM a\nCOPY ../../nothing/./ /\nCMD x\n", ": nothing" },
	{ "FROM a\nCOPY no*.py src/?.c [abc].py /\nCMD x\n", NULL },
	{ "FROM a\nARG X\nCOPY $X ${X:-y} /\nCMD x\n", NULL },
	{ "FROM a\nCOPY a\\ b /\nCMD x\n", NULL },
	{ "FROM a\nCOPY \"nothing\" /\nCMD x\n", NULL },
	{ "FROM a\nADD https://a.example/nothing git@a.example:b/c git://x/y /\nCMD x\n", NULL },
	{ "FROM a\nCOPY https://a.example/nothing /\nCMD x\n", ": https:/a.example/nothing" },
	{ "FROM a\nCOPY [\"a b\", \"app.py\", \"/x/\"]\nCMD x\n", NULL },
	{ "FROM a\nCOPY [ \"nothing\", \"/x/\" ]\nCMD x\n", ": nothing" },
	{ "FROM a\nCOPY [\"$X\", \"/x/\"]\nCMD x\n", NULL },
	{ "FROM a\nCOPY [app.py] /\nCMD x\n", NULL },
	{ "FROM a\nCOPY app.py\nCMD x\n", NULL }, /* BuildKit says what is wrong */
	{ "FROM a\nCOPY\nCOPY --from=x\nCOPY --chmod=1\nCMD x\n", NULL },
	{ "FROM a\nONBUILD COPY nothing /\nCMD x\n", NULL },
	/* stages */
	{ "FROM a AS b\nFROM c\nCOPY --from=b nothing /\nCOPY --from=other/image nothing /\nCMD x\n",
	  NULL },
	{ "FROM a AS b\nCOPY nothing /\nFROM c\nCMD x\n", NULL }, /* b is not built */
	{ "FROM a AS b\nCOPY nothing /\nFROM c\nCOPY --from=B /x /\nCMD x\n", "Dockerfile:2: " },
	{ "FROM a\nCOPY nothing /\nFROM c\nCOPY --link --from=0 /x /\nCMD x\n", "Dockerfile:2: " },
	{ "FROM a AS b\nCOPY nothing /\nFROM b\nCMD x\n", "Dockerfile:2: " },
	{ "FROM a AS b\nCOPY nothing /\nFROM b AS c\nFROM d\nRUN --mount=type=bind,from=c,target=/x y\nCMD x\n",
	  "Dockerfile:2: " },
	{ "COPY nothing /\nFROM a\nCMD x\n", NULL },
};

/* For the name of a result. */
static const char *one_line(const char *s)
{
	static char text[256];
	size_t n = 0;

	for (; *s && n + 1 < sizeof(text); s++)
		text[n++] = *s == '\n' || *s == '\r' ? '|' : *s;
	text[n] = '\0';
	return text;
}

static void test_cases(void)
{
	struct buf names;
	struct dockerfile_context context = { has, &names };

	buf_init(&names, sizeof(files));
	if (buf_add(&names, files, sizeof(files) - 1) < 0)
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err e = ERR_INIT;
		int r = dockerfile_check(cases[i].text, strlen(cases[i].text), &context, &e);

		if (!cases[i].want)
			ok(r == 0, "fine: %s %s", one_line(cases[i].text), e.msg);
		else
			ok(r < 0 && strstr(e.msg, cases[i].want), "not: %s (%s)",
			   one_line(cases[i].text), e.msg);
	}
	buf_done(&names);
}

static void test_sizes(void)
{
	static char text[600 << 10];
	struct err e = ERR_INIT;
	size_t n = 0;

	ok_int(dockerfile_check("FROM a\nCOPY nothing /\nCMD x", 27, NULL, &e), 0,
	       "without a context nothing is missing");
	for (int i = 0; i < 70; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "FROM a\n");
	ok(dockerfile_check(text, n, NULL, &e) < 0 && strstr(e.msg, "too many stages"),
	   "too many stages: %s", e.msg);
	memset(text, 'x', sizeof(text));
	memcpy(text, "FROM a\nCMD x\nCOPY ", 18);
	memcpy(text + sizeof(text) - 3, " /\n", 3);
	e = (struct err)ERR_INIT;
	ok_int(dockerfile_check(text, sizeof(text), &(struct dockerfile_context){ has, NULL }, &e),
	       0, "a path that no folder can have is not looked for");
}

int main(void)
{
	test_cases();
	test_sizes();
	return tap_done();
}
