/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_VM_H
#define ASB_LOCAL_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "host/local/accel.h"
#include "host/local/boot.h"
#include "host/local/caplog.h"
#include "host/local/qmp.h"
#include "host/local/ram.h"
#include "host/local/share.h"
#include "host/local/vmdir.h"
#include "lib/chan.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/line.h"
#include "lib/loop.h"
#include "lib/proc.h"

/*
 * One supervised VM, shared by the parts of the supervisor: supervise.c (set-up, signals, owner,
 * the end), machine.c (QEMU), life.c (phases and operations), begin.c and restore.c (the start), make.c, save.c and
 * suspend.c and branch.c (snapshots),
 * link.c and ctl.c (the sockets), hook.c (requests to the guest), idle.c (what ends by itself).
 */
struct link;
struct ctl;
struct hook;
struct idle;
struct make;
struct restore;
struct save;

enum vm_phase {
	VM_BOOTING,
	VM_RUNNING,
	VM_SUSPENDING,
	VM_SUSPENDED,
	VM_RESUMING,
	VM_STOPPING, /* orderly power-off */
	VM_ENDING,   /* QEMU is being killed */
	VM_ENDED,
};

enum vm_mode {
	VM_CREATE, /* a new VM: without `keep` nothing of it remains */
	VM_START,  /* a named one, again from its disk: that stays whatever happens */
};

enum vm_origin {
	VM_BOOTED,   /* by its kernel */
	VM_CLONED,   /* goes on from a template: base.ram, base.devices */
	VM_RESTORED, /* goes on from where it was suspended: saved/ */
};

typedef void vm_answer_fn(void *arg,
			  const struct err *e); /* of an operation; E->code ERR_NONE: done */

struct vm {
	struct loop loop;
	struct vm_config config;
	struct vm_status status;
	struct loop_timer status_again; /* when it could not be written; fn is NULL else */
	struct share share;
	char qemu[LOCAL_PATH_MAX];
	int dirfd, lock; /* lock: held as long as we live */
	enum vm_phase phase;
	enum vm_mode mode;
	enum vm_origin origin;
	bool balloon;
	bool based;		   /* its memory is mapped from base.ram */
	int64_t started, deadline; /* loop_now */

	/* owner */
	struct line_peer owner;
	bool kept;
	bool let_go; /* restored: its memory is in QEMU and nowhere else */

	/* machine */
	enum accel accel;
	struct proc_child qemu_child;
	bool qemu_runs;
	struct loop_watch exit_watch, console_watch, stderr_watch;
	struct loop_timer last_words;
	int console_fd, stderr_fd, channel_fd;
	int state_fd;	 /* number in QEMU of the device state it may load */
	int qemu_status; /* of waitpid(2), when it runs no more */
	int stderr_lines;
	struct qmp qmp;
	struct line_peer boot_port;
	struct chan *chan;
	struct boot boot;
	struct caplog console;
	char stderr_line[256]; /* last line that QEMU wrote */
	bool guest_seen;       /* a byte of it has come */

	/* life */
	struct loop_timer timer; /* deadline of the phase */
	struct loop_timer
		probe; /* deadline of the first boot under KVM, and of a clone's first sign */
	bool init_seen, run_posted, quit_sent; /* run_posted: the guest was ready */
	bool destroy;			       /* at the end the folder and the name go */
	vm_answer_fn *op_answer;	       /* of the operation under way */
	void *op_arg;
	int64_t grace_ns;

	struct link *link;
	struct ctl *ctl;
	struct hook *hook;
	struct idle *idle;
	char idle_reason[64],
		end_reason[64]; /* why we end or suspend it ourselves; "" = we do not */
	struct make *make;	/* a template that is being made */
	struct save *save;	/* a guest that is being written down */
	struct restore *restore;
	struct loop_timer quiet; /* for the channel to be closed before a suspension */
	bool saving, branching;
	int64_t stopped_at; /* for a branch, and where it goes: */
	char branch[80];
	unsigned branch_how;
	char why[256]; /* a suspension is undone */
};

/* supervise.c */
void vm_stage(struct vm *vm, const char *stage); /* tells the owner */
void vm_set_status(struct vm *vm, enum sandbox_state state, const char *reason);
void vm_ready(struct vm *vm);			    /* commands can run now */
void vm_failed(struct vm *vm, const struct err *e); /* tells the owner why it does not start */
void vm_end(struct vm *vm);			    /* everything is over; leaves the loop */

/* machine.c */
int machine_start(struct vm *vm, struct err *e) MUST_CHECK;
void machine_kill(struct vm *vm);
void machine_close(struct vm *vm);	 /* our ends of its sockets; fine when closed */
void machine_new_channel(struct vm *vm); /* drops every stream and begins with a hello */
void machine_how_ended(const struct vm *vm, char *out, size_t size);

/* life.c: what machine.c tells */
void life_qemu_ready(struct vm *vm);
void life_guest_seen(struct vm *vm);
void life_boot_changed(struct vm *vm, const char *stage); /* STAGE: "" for an error line */
void life_channel_up(struct vm *vm);
void life_channel_down(struct vm *vm);
void life_qemu_exited(struct vm *vm);
/* ... and what is asked for. ANSWER is called exactly once, maybe at once. */
void life_boot(struct vm *vm);
void life_suspend(struct vm *vm, vm_answer_fn *answer, void *arg);
void life_resume(struct vm *vm, vm_answer_fn *answer, void *arg);
/* NAME: of the folder that the copy is written to, below the VM's: branch-<id of a child>. */
enum branch_how {
	BRANCH_SYNC = 1 << 0, /* the guest writes its files to the disk first */
	BRANCH_DISK = 1 << 1, /* the disk alone: connections are not cut */
};
void life_branch(struct vm *vm, const char *name, unsigned how, vm_answer_fn *answer, void *arg);
void life_power_off(struct vm *vm, int64_t grace_ns, vm_answer_fn *answer, void *arg);
void life_remove(struct vm *vm, vm_answer_fn *answer, void *arg);
void life_finish(struct vm *vm, bool destroy, const char *reason); /* kills QEMU and ends */

/* idle.c: --idle-timeout and --max-duration */
int idle_start(struct vm *vm) MUST_CHECK;
void idle_stop(struct vm *vm);
void idle_runs(struct vm *vm);		/* it is RUNNING: idleness is counted from now on */
void idle_hold(struct vm *vm, bool on); /* a client is there, whether or not bytes pass */
/* A client came. True when the guest is being suspended for being idle: that is undone, and the client may wait. */
bool idle_interrupt(struct vm *vm);
bool idle_wanted(struct vm *vm); /* in suspend.c: it was, or will be, interrupted */
bool idle_hand_over(
	struct vm *vm); /* true: the suspension under way is somebody's wish from now on */

/* link.c: link.sock in the working directory */
int link_start(struct vm *vm, struct err *e) MUST_CHECK;
void link_stop(struct vm *vm);
void link_channel_up(struct vm *vm); /* those who waited for it may go on */
void link_cut(
	struct vm *vm); /* ends every connection that has a stream: before its channel is freed */
int64_t link_moved(
	const struct vm *vm); /* loop_now of the last byte of a client, or to one; 0: none yet */
int link_adopt(struct vm *vm, int fd, uint16_t port)
	MUST_CHECK; /* FD, owned, becomes a connection to PORT */

/* ctl.c: ctl.sock in the working directory */
int ctl_start(struct vm *vm, struct err *e) MUST_CHECK;
void ctl_stop(struct vm *vm);

/* hook.c. STATUS: the HTTP status, or a negative errno; TEXT: the answer's beginning, or what went
 * wrong. */
typedef void hook_done_fn(struct vm *vm, int status, const char *text);
int hook_start(struct vm *vm) MUST_CHECK;
void hook_stop(struct vm *vm); /* a hook under way is dropped without a call */
/* POST PATH on the hook port. One at a time: -EBUSY. FN is called exactly once, from the loop,
 * after 0. */
int hook_post(struct vm *vm, const char *path, const char *body, int64_t limit_ns, hook_done_fn *fn)
	MUST_CHECK;
/* The same as GET PATH on PORT. Gives way, without a call, to any hook that is posted meanwhile. */
int hook_ask(struct vm *vm, uint16_t port, const char *path, int64_t limit_ns, hook_done_fn *fn)
	MUST_CHECK;

#endif
