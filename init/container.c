/* SPDX-License-Identifier: Apache-2.0 */
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "find.h"
#include "kill_tree.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "reap.h"
#include "lib/str.h"
#include "sup.h"

/*
 * Nothing of the machine is touched here: the container's runtime has made mounts, network and
 * clock. What is left is to start agentd, asb-hooks and the command, to pass signals on, to reap,
 * and to end.
 *
 * The end has three phases. ASKED: TERM or INT came and was passed on; the command has GRACE_NS,
 * which is less than the 10 s that docker stop waits before it kills us. REST: the command has
 * ended (or there is none, or its grace is over); what is left gets TERM and REST_NS. KILL: then
 * SIGKILL, again and again, because each death may bring us new orphans.
 */

#define GRACE_NS (7000 * 1000000LL)
#define REST_NS	 (1500 * 1000000LL)
#define KILL_NS	 (1000 * 1000000LL)
#define TICK_NS	 (10 * 1000000LL)

enum phase { PHASE_RUN, PHASE_ASKED, PHASE_REST, PHASE_KILL };

static struct loop loop;
static struct sup sup;
static struct proc_child command = { 0, -1 };
static enum phase phase;
static struct loop_timer phase_timer, reap_again;
static int exit_status;

/* --- the command --- */

/* In the child: a process group of its own, in front of the terminal when there is one, so that ^C
 * reaches it once. */
static int own_group(void *arg, enum proc_step *step)
{
	struct sigaction ign = { .sa_handler = SIG_IGN }, dfl = { .sa_handler = SIG_DFL };

	(void)arg;
	(void)step;
	if (setpgid(0, 0) < 0)
		return -errno;
	if (isatty(STDIN_FILENO)) {
		(void)sigaction(SIGTTOU, &ign, NULL);
		(void)tcsetpgrp(STDIN_FILENO, getpid());
		(void)sigaction(SIGTTOU, &dfl, NULL);
	}
	return 0;
}

static int start_command(char **argv)
{
	struct proc_spec spec = PROC_SPEC_INIT;
	struct err e = ERR_INIT;
	int r;

	spec.argv = argv;
	for (int i = 0; i < 3; i++)
		spec.fd[i] = fcntl(i, F_GETFD) < 0 ? -1 : i;
	spec.child_fn = own_group;
	r = proc_spawn(&spec, &command, NULL, &e);
	if (r == 0)
		return 0;
	log_error("%s", e.msg);
	return e.code == ERR_NOT_FOUND ? CONTAINER_EXIT_NOT_FOUND
	       : e.code == ERR_DENIED  ? CONTAINER_EXIT_NOT_EXECUTABLE
				       : CONTAINER_EXIT_USAGE;
}

/* --- the end --- */

static void begin(enum phase p)
{
	static const int64_t limit_ns[] = { 0, GRACE_NS, REST_NS, KILL_NS };

	if (p <= phase)
		return;
	phase = p;
	loop_arm(&loop, &phase_timer, limit_ns[p]);
	if (p == PHASE_REST) {
		sup_stop(&sup);
		kill_tree(SIGTERM);
	} else if (p == PHASE_KILL) {
		kill_tree(SIGKILL);
		loop_arm(&loop, &reap_again, TICK_NS);
	}
}

static void on_phase_timer(struct loop_timer *t)
{
	(void)t;
	if (phase == PHASE_KILL)
		loop_stop(&loop); /* what is left cannot be killed; the kernel ends it with us where
				     we are PID 1 */
	else
		begin(phase == PHASE_ASKED ? PHASE_REST : PHASE_KILL);
}

static void on_ended(void *arg, pid_t pid, int status)
{
	(void)arg;
	if (sup_exited(&sup, pid, status) || pid != command.pid)
		return;
	command.pid = 0;
	exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	begin(PHASE_REST);
}

static void reap(struct loop_timer *t)
{
	enum reap_result r = reap_children(on_ended, NULL);

	if (r == REAP_NONE && phase >= PHASE_REST)
		loop_stop(&loop);
	else if (r == REAP_MORE)
		loop_arm(&loop, t, 0);
	else if (phase == PHASE_KILL) {
		kill_tree(SIGKILL);
		loop_arm(&loop, t, TICK_NS);
	}
}

/* --- signals --- */

static const int passed[] = {
	SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT
};

static void on_signal(void *arg, const void *siginfo)
{
	const struct signalfd_siginfo *si = siginfo;
	int sig = (int)si->ssi_signo;

	(void)arg;
	if (sig == SIGCHLD) {
		reap(&reap_again);
		return;
	}
	if (command.pid)
		ignore_result(proc_signal(&command, sig)); /* -ESRCH: its end is on the way to us */
	if (sig == SIGTERM || sig == SIGINT)
		begin(command.pid ? PHASE_ASKED : PHASE_REST);
}

static int take_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		(void)sigaddset(&set, passed[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	return loop_signals(&loop, &set, on_signal, NULL);
}

/* --- start --- */

static void on_ready(void *arg, const char *late)
{
	(void)arg;
	if (late)
		log_error("%s has not said within 30 s that it listens", late);
}

static int add_service(const char *name)
{
	char path[PATH_MAX];
	int r = find_program(name, path, sizeof(path));

	if (r == 0)
		r = sup_add(&sup, name, path);
	if (r < 0)
		log_error("cannot find %s beside asb-init, in " FIND_DIRS " or in PATH", name);
	return r;
}

static void default_env(void)
{
	/* Only what the image has not said. They reach the command as well, as docker's own PATH
	 * and HOME do. */
	(void)setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0);
	(void)setenv("HOME", "/root", 0);
	(void)setenv("LANG", "C.UTF-8", 0);
}

int container_main(char **argv)
{
	extern char **environ;
	int r = loop_init(&loop);

	log_open("asb-init", STDERR_FILENO, LOG_LEVEL_INFO);
	phase_timer.fn = on_phase_timer;
	reap_again.fn = reap;
	default_env();
	if (r == 0)
		r = take_signals();
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return CONTAINER_EXIT_USAGE;
	}
	if (getpid() != 1 && proc_become_subreaper() < 0) /* qemu-user has no such thing */
		log_warn("orphans go to PID 1, not to asb-init");
	sup = (struct sup){ .env = environ, .cgroup_fd = -1, .ready = on_ready };
	sup_init(&sup, &loop);
	if (add_service("agentd") < 0)
		return CONTAINER_EXIT_USAGE;
	ignore_result(
		add_service("asb-hooks")); /* an image without lifecycle hooks may leave it out */
	sup_start(&sup);
	if (argv) {
		exit_status = start_command(argv);
		if (exit_status)
			begin(PHASE_REST);
	}
	r = loop_run(&loop);
	return r < 0 ? CONTAINER_EXIT_USAGE : exit_status;
}
