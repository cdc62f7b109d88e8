/* SPDX-License-Identifier: Apache-2.0 */
#include "../../lib/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/buf.h"
#include "../../lib/fd.h"
#include "../lib/tap.h"

static struct err e;

/* Runs ARGV with its output in OUT; the wait status, or -1 when it did not start. */
static int run(struct proc_spec *s, struct buf *out)
{
	struct proc_child c;
	int p[2], status = -1;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	s->fd[1] = p[1];
	if (proc_spawn(s, &c, NULL, &e) < 0) {
		fd_close(&p[0]), fd_close(&p[1]);
		return -1;
	}
	fd_close(&p[1]);
	buf_clear(out);
	if (fd_read_all(p[0], out) < 0 || waitpid(c.pid, &status, 0) < 0)
		status = -1;
	fd_close(&p[0]), fd_close(&c.pidfd);
	return status;
}

static void test_good(struct buf *out)
{
	char *sh[] = { "sh", "-c", "printf '%s|' \"$0\" \"$@\"; pwd; cat; exit 7", "a b", "",
		       "c",  NULL };
	char *fds[] = { "sh", "-c",
			"ls /proc/self/fd | wc -l; ps -o sid= -p $$ | tr -d ' '; echo $$", NULL };
	char *sig[] = { "sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\n\\t'",
			NULL };
	char *env[] = { "PATH=/usr/bin:/bin", "X=1", NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	char *line, *sid;

	s.argv = sh, s.cwd = "/tmp", s.envp = env;
	ok_int(WEXITSTATUS(run(&s, out)), 7, "the exit status arrives");
	ok_str(out->p, "a b||c|/tmp\n", "arguments byte for byte, the directory, stdin at its end");
	s.argv = fds, s.flags = PROC_SETSID;
	(void)fcntl(open("/dev/null", O_RDONLY), F_DUPFD, 50); /* a leak: not CLOEXEC */
	ok_int(run(&s, out), 0, "a session of its own");
	line = out->p;
	ok(!strncmp(line, "4\n", 2), "no descriptor but three (and ls's own) is inherited");
	sid = line + 2;
	ok(strchr(sid, '\n') &&
		   !strncmp(sid, strchr(sid, '\n') + 1, (size_t)(strchr(sid, '\n') - sid)),
	   "it leads its session");
	(void)signal(SIGPIPE, SIG_IGN);
	s.argv = sig;
	ok_int(run(&s, out), 0, "with signals ignored here");
	ok_str(out->p, "SigBlk:0000000000000000SigIgn:0000000000000000",
	       "the child has a clean slate");
}

static void test_bad(void)
{
	char *nonesuch[] = { "nonesuch-program", NULL }, *empty[] = { "", NULL },
	     *ok_prog[] = { "true", NULL };
	char *dir[] = { "/tmp", NULL }, *plain[] = { "/etc/passwd", NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child c;
	enum proc_step step = PROC_STEP_FORK;

	s.argv = nonesuch;
	ok_int(proc_spawn(&s, &c, &step, &e), -ENOENT, "a program that is not there");
	ok_int(step, PROC_STEP_EXEC, "fails at exec");
	ok(strstr(e.msg, "nonesuch-program"), "and is named: %s", e.msg);
	s.argv = empty;
	ok_int(proc_spawn(&s, &c, &step, &e), -ENOENT, "an empty name");
	s.argv = dir;
	ok_int(proc_spawn(&s, &c, &step, &e), -EACCES, "a directory");
	s.argv = plain;
	ok_int(proc_spawn(&s, &c, &step, &e), -EACCES, "a file without the bit");
	s.argv = ok_prog, s.cwd = "/nonesuch";
	ok_int(proc_spawn(&s, &c, &step, &e), -ENOENT, "a directory that is not there");
	ok_int(step, PROC_STEP_CWD, "fails at the directory");
	ok(strstr(e.msg, "/nonesuch"), "and is named: %s", e.msg);
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no zombie is left");
}

static int refuse(void *arg, enum proc_step *step)
{
	(void)arg;
	(void)step;
	return -EDOM;
}

static int stop_here(void *arg, enum proc_step *step)
{
	(void)arg;
	(void)step;
	(void)kill(getpid(), SIGSTOP); /* as a stranger of the same user could */
	return 0;
}

/* Before there was a limit this hung for good. */
static void test_stopped(void)
{
	char *prog[] = { "true", NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child c;
	int status = 0;

	proc_start_s = 1;
	s.argv = prog;
	s.child_fn = stop_here;
	ok_int(proc_spawn(&s, &c, NULL, &e), 0,
	       "a child that is stopped half-way does not hold us");
	ok(waitpid(c.pid, &status, 0) == c.pid && WIFSIGNALED(status) &&
		   WTERMSIG(status) == SIGKILL,
	   "and is killed");
	fd_close(&c.pidfd);
	s.child_fn = NULL;
	s.argv = (char *[]){ "sleep", "1.3", NULL };
	ok_int(proc_spawn(&s, &c, NULL, &e), 0, "a program that runs longer than that");
	ok(waitpid(c.pid, &status, 0) == c.pid && status == 0, "is left alone");
	fd_close(&c.pidfd);
}

int main(void)
{
	char *sleeper[] = { "sleep", "100", NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child c;
	int status = 0;
	AUTO_BUF out;

	buf_init(&out, 1 << 20);
	test_good(&out);
	test_bad();
	test_stopped();
	s.argv = sleeper;
	s.child_fn = refuse;
	ok_int(proc_spawn(&s, &c, NULL, &e), -EDOM, "the caller's own step can refuse");
	s.child_fn = NULL;
	ok_int(proc_spawn(&s, &c, NULL, &e), 0, "a sleeper");
	ok_int(proc_signal(&c, SIGTERM), 0, "is signalled");
	ok(waitpid(c.pid, &status, 0) == c.pid && WTERMSIG(status) == SIGTERM, "and dies of it");
	ok_int(proc_signal(&c, SIGTERM), -ESRCH, "a second signal hits nobody");
	fd_close(&c.pidfd);
	return tap_done();
}
