/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_EXEC_H
#define AGENTD_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "confine.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/proc.h"
#include "limits.h"
#include "outlog.h"
#include "spec.h"
#include "tree.h"

/*
 * The exec engine: a fixed table of commands. Whoever answers HTTP looks at its fields; only
 * exec*.c change them.
 */
enum exec_state {
	EXEC_FREE,
	EXEC_RUNNING,
	EXEC_LINGER, /* the leader has ended; its last output is being read */
	EXEC_EXITED, /* the result is final */
	EXEC_DYING,  /* forgotten; its tree is being killed. Nobody sees it any more */
};

struct exec;

struct exec_pipe { /* one output of a command */
	struct loop_watch watch;
	struct exec *e;
	int fd;		 /* owned; -1 at its end */
	unsigned stream; /* PROTO_STREAM_STDOUT or _STDERR */
	uint64_t bytes;
	uint64_t since_end; /* bytes read since the leader's end */
	bool grown;	    /* its pipe has LIMIT_PIPE, as far as that can be had */
	bool drained;	    /* it was empty at a moment after the leader's end */
	int64_t last_turn;  /* when it was read last */
	struct loop_timer
		spill; /* until then it is not watched: rests, or what comes is thrown away */
};

/* Somebody who reads the log live. Embedded in the reader's object. */
struct exec_follower {
	struct exec *e;	 /* NULL when the exec has been forgotten */
	uint64_t offset; /* the next byte it wants */
	/* Until where its client is known to have everything, which is less than what was sent: of a
	 * client that asks for a bounded piece at a time. Else the same as offset. */
	uint64_t sure;
	bool bounded;
	void (*wake)(struct exec_follower *f); /* there may be something new */
	struct exec_follower *next;
};

/* Somebody who writes to stdin. */
struct exec_feeder {
	void (*writable)(struct exec_feeder *f); /* after exec_write took less than it was given */
	void (*closed)(
		struct exec_feeder *f); /* superseded, or the command ended: gone from the exec */
};

struct exec_input {
	struct loop_watch watch;
	int fd;		  /* owned; -1: none, or closed */
	bool wanted, eof; /* asked for; closed by its caller (a terminal never is) */
	char last;	  /* byte written */
	uint64_t offset;  /* bytes taken */
	uint64_t
		eof_at; /* of a terminal: 1 + the offset at which its end was typed last; 0: never */
	struct exec_feeder *feeder;
	char *own; /* owned: input that came with the request */
	size_t own_len, own_at;
};

struct exec {
	enum exec_state state;
	char id[LIMIT_ID + 1]; /* "" for compatible ones */
	uint64_t request[2];   /* hash of the request that started it */
	cJSON *asked;	       /* owned: what the request was, for describe.c; or NULL */
	struct loop *loop;
	struct proc_child child;
	struct tree tree;
	struct confine confine; /* what is in force */
	bool leader_ended;
	int exit_code, signal; /* signal 0: ended by itself */
	bool timed;	       /* it has a time limit, and holds the running clock */
	int64_t deadline;      /* runclock_now() at which that is over */
	bool timed_out, oom, truncated;
	int64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t started_at_ms;	  /* wall clock */
	int64_t keep_ns;	  /* of exec_told; 0: until DELETE, or until the slot is needed */
	bool half_kept;

	struct exec_pipe out[2]; /* with a terminal: out[0] is its master, and out[1] is none */
	struct exec_input in;	 /* with a terminal: the master once more */
	bool pty;
	uint16_t rows, cols; /* of the terminal */
	int tty;	     /* owned: its slave, kept open until the leader ends; else -1 */
	struct outlog log;   /* native */
	bool capture;	     /* compatible: into CAP instead of the log */
	struct buf cap[2];
	bool paused;	    /* nobody fetches: the pipes are not read */
	uint64_t anchor;    /* where the last follower stood when it left */
	int64_t pace_until; /* bytes that nobody has fetched are kept until then */
	int64_t last_data;
	struct exec_follower *followers;
	struct loop_timer timeout, linger, pace;

	/* Once, from the loop: when EXEC_EXITED is reached, or when a killed leader does not end
	 * (state is RUNNING then). */
	void (*on_done)(struct exec *e, void *arg);
	void *done_arg;
};

void exec_init(struct loop *l);
void exec_stop(void); /* after the loop: releases everything */

/*
 * Starts S. ID: NULL for a compatible one, whose output is captured. Blocks only until the program
 * is executed. 0, or a negative errno with a message and, where a step of the start failed, its
 * number in *RET_STEP (else PROC_STEP_FORK).
 */
int exec_start(const struct spec *s, const char *id, struct exec **ret, enum proc_step *ret_step,
	       struct err *e) MUST_CHECK;

struct exec *exec_find(const char *id);	      /* NULL when there is none */
struct exec *exec_next(const struct exec *e); /* every visible native one; NULL begins */
unsigned exec_running(void);		      /* of both kinds */
unsigned exec_busy(void);		      /* slots that are not free */

/* Of all commands of both kinds since agentd's start. */
struct exec_stats {
	uint64_t started;
	uint64_t failed; /* could not be started */
	uint64_t ended, timed_out, oom;
};

const struct exec_stats *exec_get_stats(void);

enum exec_to { EXEC_TO_LEADER, EXEC_TO_GROUP, EXEC_TO_TREE };
/* 0, or -ESRCH when it has ended. */
int exec_signal(struct exec *e, int sig, enum exec_to to) MUST_CHECK;
void exec_kill(struct exec *e); /* the whole tree; the result follows as usual */
void exec_signal_all(int sig);	/* every tree that is left */
void exec_kill_all(void);	/* once; the caller comes back until nothing runs */

/* Forgets E and its output; a tree that is left is killed, unless KEEP_TREE and the leader has
 * ended. */
void exec_forget(struct exec *e, bool keep_tree);

/*
 * The end of E was told to somebody who followed it: where keep_ns is set, it is forgotten after twice that. In two halves,
 * because an answer may be lost while the guest is suspended, and a clock that goes on meanwhile ends one of them at most.
 */
void exec_told(struct exec *e);
bool exec_is_told(const struct exec *e); /* it is only kept for those whose answer was lost */

/* A child has ended: true when it was a leader, which is then reaped here. */
bool exec_leader_ended(pid_t pid);

/* exec_out.c */
int exec_out_open(struct exec *e, int child_fd[2]) MUST_CHECK;
int exec_out_start(struct exec *e) MUST_CHECK;
void exec_out_leader_ended(struct exec *e);
void exec_out_close(struct exec *e);
void exec_out_hang_up(struct exec *e); /* a terminal's last output has been read */
void exec_follow(struct exec *e, struct exec_follower *f);
void exec_unfollow(struct exec_follower *f);
void exec_fetched(struct exec_follower *f, size_t n); /* it took N bytes */
void exec_wake_followers(struct exec *e);
/* Moves a capture to TO; exec_capture_done frees it. */
void exec_take_capture(struct exec *e, int i, struct buf *to);
void exec_capture_done(struct buf *b);
/* A compatible exec that is over and whose pipes have ended is forgotten here; do not touch E
 * afterwards. */
void exec_out_release(struct exec *e);
void exec_finish(struct exec *e); /* exec.c: the output is complete */

/* exec_tty.c */
int exec_tty_open(struct exec *e, const struct spec *s) MUST_CHECK;
/* Before the leader is reaped. */
void exec_tty_leader_ended(struct exec *e);
int exec_tty_signal(struct exec *e, int sig) MUST_CHECK; /* to the foreground group */
/* -ENOTTY without a terminal, -ESRCH when it has ended; another negative errno. */
int exec_resize(struct exec *e, uint16_t rows, uint16_t cols) MUST_CHECK;
/* Types the end of the input. 0, -EAGAIN: wait for writable; -EPIPE. */
int exec_tty_eof(struct exec *e) MUST_CHECK;

/* exec_in.c */
void exec_in_init(struct exec *e);
int exec_in_open(struct exec *e, const struct spec *s, int *ret_child_fd) MUST_CHECK;
void exec_in_start(struct exec *e);
void exec_in_close(struct exec *e);
void exec_feed(struct exec *e, struct exec_feeder *f); /* the one before it is told */
void exec_unfeed(struct exec *e, struct exec_feeder *f);
/* Bytes taken; 0 or fewer than N: wait for writable; -EPIPE when the command has closed its end or
 * has ended. */
ssize_t exec_write(struct exec *e, const char *p, size_t n) MUST_CHECK;

#endif
