/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_EXEC_H
#define ASB_AGENT_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Runs one command in a sandbox, over the agent API (docs/agent-api.md): its output goes to our
 * stdout and stderr as it comes, our stdin to it, signals that we get to it. Blocks until it is
 * over.
 */
struct backend;
struct keys;

#define EXEC_ID_MAX	 64
#define EXEC_TICK_NS	 (250 * 1000000LL)
#define EXEC_CAPTURE_MAX (64U << 20) /* of each stream, with capture */

struct exec_spec { /* all borrowed */
	const struct backend *backend;
	const char *id; /* of the sandbox */
	char *const *argv;
	unsigned argc;
	char *const *env;    /* "K=V", NULL-terminated; NULL = none */
	const char *cwd;     /* NULL = the agent's default */
	int64_t timeout_ns;  /* 0 = none */
	const char *user;    /* "name[:group]" or numbers; NULL = the agent's own */
	const char *seccomp; /* "default", "restricted", "none"; NULL = the agent's default */
	uint64_t memory;     /* bytes; 0 = no limit, here and below */
	double cpus;
	uint64_t pids;
	bool use_stdin;
	/*
	 * A terminal for the command. Where our stdin is one too, it is raw for as long as the
	 * command runs, our size is the command's, and DETACH_KEYS (NULL = none) leave it running.
	 */
	bool tty;
	bool tty_asked; /* it is not to do without one where the agent has none */
	const struct keys *detach_keys;
	bool detach; /* only start it */
	/* The whole id of a command that runs or has ended: it is joined at byte OFFSET of its
	 * output, FED bytes of its input are taken already; nothing is started, and neither a
	 * signal nor a reader that is gone kills it. NULL = start one. */
	const char *attach;
	uint64_t offset, fed;
	/* With attach, to look only: signals end us and are not passed on. */
	enum exec_watch {
		EXEC_TAKE_PART,
		EXEC_WATCH_NOW, /* what is held by now */
		EXEC_WATCH_END	/* until it has ended */
	} watch;
	bool capture;	    /* collect the output in the result instead of printing it */
	size_t capture_max; /* of each stream, with capture; 0 = EXEC_CAPTURE_MAX */
	bool kill;  /* the first signal that we get kills the command, and is not passed on */
	bool leave; /* the sandbox is thrown away afterwards: do not tidy up in it */
	/* Called every EXEC_TICK_NS until it is over, with the bytes of output that came so far; NULL = not wanted. */
	void (*tick)(void *arg, uint64_t bytes);
	void *tick_arg;
};

enum exec_end {
	EXEC_ENDED,	     /* exit_code, or signal */
	EXEC_TIMED_OUT,	     /* it and all its children were killed */
	EXEC_NO_COMMAND,     /* not found */
	EXEC_NOT_EXECUTABLE, /* found, but the kernel does not execute it */
	EXEC_INTERRUPTED,    /* we got signal own_signal, and killed it */
	EXEC_READER_GONE,    /* our stdout was closed, and we killed it */
	EXEC_DETACHED,	     /* it runs on */
};

struct exec_result {
	enum exec_end end;
	char id[EXEC_ID_MAX + 1]; /* of the command; "" = none was asked for */
	int exit_code;
	int signal; /* that ended the command; 0 = none */
	int own_signal;
	bool oom, truncated;
	uint64_t lost;	  /* bytes of output that the agent no longer had */
	uint64_t skipped; /* of those, what was gone when we attached */
	bool no_tty;	  /* the agent has no terminals: it had none, and no input */
	bool runs_on;	  /* interrupted, but the agent cannot end it */
	bool mid_line;	  /* the cursor of our terminal is not at the begin of a line */
	int64_t duration_ms;
	struct buf output[2]; /* captured stdout, stderr; owned */
	uint64_t total[2];    /* bytes that came of each, captured or not */
};

/*
 * 0 when E says nothing: RET->end tells what happened (for NO_COMMAND and NOT_EXECUTABLE E has the
 * message). Negative errno with E when the agent or the sandbox failed: what became of the command
 * is then not known. exec_result_done in every case.
 */
int exec_run(const struct exec_spec *s, struct exec_result *ret, struct err *e) MUST_CHECK;
void exec_result_done(struct exec_result *r);

#endif
