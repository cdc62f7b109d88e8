/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/aws/creds_int.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/proc.h"
#include "lib/str.h"

/* credential_process: a program that prints credentials as JSON. It is run without a shell. */

#define WORDS_MAX  64
#define LIMIT_NS   (60LL * 1000000000)
#define STDERR_MAX 4096
#define TURN_MS	   200 /* where no pidfd tells that it has ended */

/* Cuts S up in place as a POSIX shell would cut words that hold no variables. 0 or -EINVAL. */
static int cut_words(char *s, char **words, size_t max)
{
	size_t n = 0;

	for (;;) {
		char *out, quote = '\0';

		s += strspn(s, " \t\n");
		if (!*s)
			break;
		if (n + 1 >= max)
			return -EINVAL;
		words[n++] = out = s;
		for (; *s && (quote || !strchr(" \t\n", *s)); s++) {
			if (quote ? *s == quote : *s == '"' || *s == '\'')
				quote = quote ? '\0' : *s;
			else if (*s == '\\' && s[1] && quote != '\'')
				*out++ = *++s;
			else
				*out++ = *s;
		}
		if (quote)
			return -EINVAL;
		s += *s != '\0';
		*out = '\0';
	}
	words[n] = NULL;
	return n ? 0 : -EINVAL;
}

/* What FD has, into B; closes it at its end. What does not fit ends the whole. */
static int drain(int *fd, struct buf *b)
{
	char p[4096];
	ssize_t k = read(*fd, p, sizeof(p));

	if (k < 0)
		return errno == EINTR ? 0 : -errno;
	if (k == 0) {
		fd_close(fd);
		return 0;
	}
	return buf_add(b, p, (size_t)k) < 0 ? -EMSGSIZE : 0;
}

static int read_both(int *out, int *errors, int64_t end, struct buf *b, struct buf *complaint)
{
	int r = 0;

	while (r == 0 && (*out >= 0 || *errors >= 0)) {
		struct pollfd pf[2] = { { .fd = *out, .events = POLLIN },
					{ .fd = *errors, .events = POLLIN } };
		int64_t left = end - loop_now();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(pf, 2, (int)(left / 1000000) + 1) <= 0)
			continue;
		if (pf[0].revents)
			r = drain(out, b);
		if (r == 0 && pf[1].revents && drain(errors, complaint) < 0)
			fd_close(errors); /* enough of it */
	}
	return r;
}

/* Its end, which may come long after that of its output; by force at END. */
static int reap(const struct proc_child *c, int64_t end, int *ret_status)
{
	struct pollfd pf = { .fd = c->pidfd, .events = POLLIN };
	bool late = false;

	for (;;) {
		pid_t p = waitpid(c->pid, ret_status, late ? 0 : WNOHANG);

		if (p == c->pid || (p < 0 && errno != EINTR))
			return late ? -ETIMEDOUT : 0;
		if (!late && loop_now() >= end) {
			ignore_result(proc_signal(c, SIGKILL));
			late = true;
		}
		if (!late)
			(void)poll(&pf, 1, TURN_MS);
	}
}

static int pipe_of(int *rd, int *wr)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*rd = p[0];
	*wr = p[1];
	return 0;
}

static int run(char *const *argv, struct buf *b, struct buf *complaint, struct err *e)
{
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child child;
	AUTO_FD out = -1;
	AUTO_FD errors = -1;
	AUTO_FD wr1 = -1;
	AUTO_FD wr2 = -1;
	int64_t end = loop_now() + LIMIT_NS;
	int r = pipe_of(&out, &wr1), late, status = 0;

	if (r == 0)
		r = pipe_of(&errors, &wr2);
	if (r < 0)
		return err_set(e, ERR_IO, -r, "credential_process");
	s.argv = argv;
	s.fd[1] = wr1;
	s.fd[2] = wr2;
	s.flags = PROC_DEATHSIG;
	r = proc_spawn(&s, &child, NULL, e);
	if (r < 0)
		return err_wrap(e, "credential_process");
	fd_close(&wr1);
	fd_close(&wr2);
	r = read_both(&out, &errors, end, b, complaint);
	late = reap(&child, r < 0 ? 0 : end, &status);
	if (r == 0)
		r = late;
	fd_close(&child.pidfd);
	if (r < 0)
		return err_set(e, ERR_DENIED, -r, "credential_process %.100s", argv[0]);
	if (status)
		return err_set(e, ERR_DENIED, 0, "credential_process %.100s failed: %.300s",
			       argv[0], complaint->p ? complaint->p : "it says nothing");
	return 0;
}

static int read_answer(const struct buf *b, const char *source, struct aws_creds *ret,
		       struct err *e)
{
	static const struct creds_members members = { "AccessKeyId", "SecretAccessKey",
						      "SessionToken", "Expiration" };
	AUTO_JSN *j = jsn_parse(b->p ? b->p : "", b->len, NULL);
	uint64_t version = 0;

	if (!j || jsn_u64(j, "Version", 1, 1, &version, NULL) != 1)
		return err_set(e, ERR_INVALID, 0,
			       "the answer of %s is no JSON document of Version 1", source);
	return creds_from_json(ret, j, &members, source, e);
}

int creds_process(struct aws *a, const char *profile, struct aws_creds *ret, struct err *e)
{
	const char *command = settings_get(&a->set, profile, "credential_process");
	char *words[WORDS_MAX], source[CREDS_SOURCE_MAX];
	AUTO_BUF out, complaint;
	char *copy;
	int r;

	buf_init(&out, CREDS_FILE_MAX);
	buf_init(&complaint, STDERR_MAX);
	if (!command)
		return 0;
	copy = strdup(command);
	if (!copy)
		return err_set(e, ERR_INTERNAL, ENOMEM, "credential_process");
	r = cut_words(copy, words, WORDS_MAX);
	if (r < 0)
		r = err_set(e, ERR_INVALID, 0,
			    "the credential_process of the profile '%.80s' is no command line",
			    profile);
	if (r == 0)
		r = run(words, &out, &complaint, e);
	if (r == 0) {
		ignore_result(str_format(source, sizeof(source),
					 "profile %.60s, credential_process",
					 profile)); /* it fits */
		r = read_answer(&out, source, ret, e);
	}
	if (out.p)
		explicit_bzero(out.p, out.len);
	free(copy);
	return r;
}
