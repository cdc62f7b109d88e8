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

/* WANT: what the refusal must contain, or behind "?" the note; NULL = it is fine. */
static const struct {
	const char *text, *want;
} cases[] = {
	{ "FROM a\nCMD x\n", NULL },
	{ "", "there is no FROM" },
	{ "# only\n", "there is no FROM" },
	{ "\xef\xbb\xbf"
	  "FROM a\nCMD x",
	  NULL },
	{ "FROM amd64/a\nCMD x\n", "Dockerfile:1: MicroVMs are arm64" },
	{ "FROM a\nENV AGENTD_PORT=81\nCMD x\n", "Dockerfile:2: agentd is called on port 8080" },
	/* continued lines */
	{ "FROM a\nRUN a \\\n # in it\n\n  b\nCMD x\n", NULL },
	{ "FROM a\nRUN x=`date`\nCMD x\n", NULL },
	{ "FROM a\nRUN x `\nCMD x\n", NULL },
	{ "# escape=`\nFROM scratch\nRUN x `\nCMD x\n", "neither ENTRYPOINT nor CMD" },
	{ "# syntax=docker/dockerfile:1\n# Escape = `\nFROM scratch\nRUN x `\nCMD x\n",
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
	/* what answers: the stage's own, or that of where it begins */
	{ "FROM scratch\n",
	  "Dockerfile:1: the last stage has neither ENTRYPOINT nor CMD, so that" },
	{ "FROM scratch\nENTRYPOINT [\"x\"]\n", NULL },
	{ "FROM scratch AS a\nCMD x\nFROM A\n", NULL },
	{ "FROM scratch AS a\nCMD x\nFROM a AS b\nRUN y\nFROM b AS c\n", NULL },
	{ "FROM scratch AS a\nFROM a AS b\nFROM b\nRUN x\n",
	  "Dockerfile:4: the last stage has neither" },
	{ "FROM scratch AS a\nCMD x\nFROM scratch\nCOPY --from=a /x /\n",
	  "Dockerfile:4: the last" },
	{ "FROM scratch\nCMD x\nENTRYPOINT []\n", NULL },
	{ "FROM scratch\nENTRYPOINT [\"x\"]\nENTRYPOINT [ ]\n", "neither" },
	{ "FROM scratch AS a\nCMD x\nFROM a\nENTRYPOINT []\n", "neither" },
	{ "FROM a\nENTRYPOINT []\n", "neither" },
	{ "FROM a\nCMD []\n", "?unless a has one" },
	{ "FROM ours:1\n",
	  "?Dockerfile:1: the last stage has neither ENTRYPOINT nor CMD: unless ours:1 has one, nothing will" },
	{ "# x\nFROM ours AS a\nFROM a\nRUN x\n", "?Dockerfile:2: the last stage has neither" },
	{ "FROM $BASE\n", "?unless $BASE has one" },
	{ "FROM Scratch\n", "?unless Scratch has one" },
	{ "FROM scratch AS a\nONBUILD CMD x\nFROM a\n", "?Dockerfile:3: " },
	{ "FROM b AS a\nCMD x\nFROM debian\nCOPY --from=a /x /\n", "?unless debian has one" },
	/* ports: of what the last stage has in its environment */
	{ "FROM a\nENV AGENTD_PORT 81\nCMD x\n",
	  "Dockerfile:2: agentd is called on port 8080: AGENTD_PORT=81" },
	{ "FROM a\nENV AGENTD_PORT=81\nENV A=1 AGENTD_PORT='8080'\nCMD x\n", NULL },
	{ "FROM a\nENV AGENTD_PORT=81\nENV AGENTD_PORT=$P\nCMD x\n", NULL },
	{ "FROM a\nENV AGENTD_HOOK_PORT=80 AGENTD_PORT=81\nENV AGENTD_HOOK_PORT=9000\nCMD x\n",
	  "AGENTD_PORT=81" },
	{ "FROM a AS b\nENV AGENTD_PORT=81\nFROM c\nCOPY --from=b /x /\nCMD x\n", NULL },
	{ "FROM a AS b\nENV AGENTD_PORT=81\nFROM b AS c\nFROM c\nCMD x\n", "Dockerfile:2: agentd" },
	{ "FROM a AS b\nENV AGENTD_PORT=81\nFROM b\nENV AGENTD_PORT=8080\nCMD x\n", NULL },
	{ "ENV AGENTD_PORT=81\nFROM a\nCMD x\n", NULL },
	/* platforms: of what is built */
	{ "FROM --platform=linux/amd64 a AS b\nFROM c\nCMD x\n", NULL },
	{ "FROM --platform=linux/amd64 a AS b\nFROM c\nCOPY --from=b /x /\nCMD x\n", NULL },
	{ "FROM --platform=linux/amd64 a AS b\nFROM b AS d\nFROM c\nCOPY --from=d /x /\nCMD x\n",
	  NULL },
	{ "FROM --platform=linux/amd64 a AS b\nFROM b AS d\nRUN x\nFROM c\nCOPY --from=d /x /\nCMD x\n",
	  "Dockerfile:1: MicroVMs are arm64" },
	{ "FROM --platform=linux/amd64 a AS b\nRUN x\nFROM c\nCOPY --from=b /x /\nCMD x\n",
	  "Dockerfile:1: MicroVMs are arm64, and so are their builds: --platform=linux/amd64" },
	{ "FROM c\nCMD x\nFROM amd64/a AS b\nFROM b\n",
	  "Dockerfile:3: MicroVMs are arm64, and so are their builds: amd64/a" },
	{ "FROM c AS amd64-tools\nFROM amd64-tools\nCMD x\n", NULL },
	{ "FROM a AS b\nCOPY nothing /\nFROM --platform=amd64 b\nENV AGENTD_PORT=81\n",
	  "Dockerfile:2: " },
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
		struct err e = ERR_INIT, note = ERR_INIT;
		int r = dockerfile_check(cases[i].text, strlen(cases[i].text), &context, &note, &e);

		if (cases[i].want && cases[i].want[0] == '?')
			ok(r == 0 && strstr(note.msg, cases[i].want + 1), "perhaps: %s (%s%s)",
			   one_line(cases[i].text), note.msg, e.msg);
		else if (note.code)
			ok(false, "no note: %s (%s)", one_line(cases[i].text), note.msg);
		else if (!cases[i].want)
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

	ok_int(dockerfile_check("FROM a\nCOPY nothing /\nCMD x", 27, NULL, NULL, &e), 0,
	       "without a context nothing is missing");
	for (int i = 0; i < 70; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "FROM a\n");
	ok(dockerfile_check(text, n, NULL, NULL, &e) < 0 && strstr(e.msg, "too many stages"),
	   "too many stages: %s", e.msg);
	memset(text, 'x', sizeof(text));
	memcpy(text, "FROM a\nCMD x\nCOPY ", 18);
	memcpy(text + sizeof(text) - 3, " /\n", 3);
	e = (struct err)ERR_INIT;
	ok_int(dockerfile_check(text, sizeof(text), &(struct dockerfile_context){ has, NULL }, NULL,
				&e),
	       0, "a path that no folder can have is not looked for");
}

int main(void)
{
	test_cases();
	test_sizes();
	return tap_done();
}
