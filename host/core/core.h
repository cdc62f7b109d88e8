/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CORE_H
#define ASB_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/backend.h"
#include "host/cli/opts.h"
#include "host/state/state.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* Sandboxes by name: what lies between the commands and a backend. */

/*
 * What a sandbox starts from and where: IMAGE (NULL = not given) or its default, and the backend by
 * --backend, else $AGENT_SANDBOX_BACKEND, else aws when the image is an ARN, else local. Refuses
 * what is not built into this asb.
 */
int core_choose(const struct cli *c, const char *image, const struct backend **ret_backend,
		const char **ret_image, struct err *e) MUST_CHECK;

/*
 * The backend whose images a command is about: by --backend, $AGENT_SANDBOX_BACKEND, the form of IMAGE (NULL = none), else the local
 * one. Refuses options that are another's.
 */
int core_images(const struct cli *c, const char *image, const struct backend **ret, struct err *e)
	MUST_CHECK;

/*
 * --region and --profile of C (borrowed for the process's life), before the command runs: they are the default of all calls of AWS
 * from now on. A command that names a sandbox refuses them when that is not on AWS, or is in another region.
 */
void core_place(const struct cli *c);

/* What S says of the platform (--region, --role, --egress-connector, --ingress); borrowed from C. */
void core_platform(const struct cli *c, struct sandbox_spec *s);

/*
 * Variables of --env-file and then --env as a NULL-terminated "K=V" array; a K without a value is
 * taken from our own environment and left out when it is not there. core_env_free.
 */
int core_env(const struct cli *c, char ***ret, struct err *e) MUST_CHECK;
void core_env_free(char ***env);
#define CORE_ENV_MAX	  4096
#define CORE_ENV_FILE_MAX (1U << 20)

/* A sandbox that is recorded. core_named_done. */
struct core_named {
	struct state_record record;
	const struct backend *backend;
	int hold;   /* owned: keeps it from being suspended for being idle; -1 = none */
	bool woken; /* it was suspended, and core_wake has resumed it */
};
/* -ENOENT + ERR_NOT_FOUND when there is no record; ERR_UNSUPPORTED when its backend is not built
 * in. */
int core_find(const char *name, struct core_named *ret, struct err *e) MUST_CHECK;
void core_named_done(struct core_named *n);

/*
 * For every command that talks with the guest: core_find, and then core_wake. That resumes a sandbox that is suspended, saying so, waits
 * for a start or a stop that is under way, and keeps it from being suspended for being idle until core_named_done or core_let_go.
 * One that has ended or is missing is no error here: connecting to it tells. Ends the process when a signal comes meanwhile.
 */
int core_reach(const char *name, struct core_named *ret, struct err *e) MUST_CHECK;
int core_wake(struct core_named *n, struct err *e) MUST_CHECK;
void core_let_go(struct core_named *n);

/* A sandbox that was made just now and is ours to keep or to lose. */
struct core_made {
	const struct backend *backend;
	struct backend_owner *owner;
	char name[SANDBOX_NAME_MAX + 1];
	char id[SANDBOX_ID_MAX + 1];
};

/*
 * Records ASKED->name under a fresh id, then makes the machine. On failure the record is gone again, unless the machine
 * could not be ended (-ENOTRECOVERABLE).
 * -EEXIST when the name is taken; -EINTR + ERR_UNAVAILABLE when a signal came (core_cancelled).
 */
int core_create(const struct backend *b, const struct sandbox_spec *asked, struct progress *p,
		int64_t limit_ns, struct core_made *ret, struct err *e) MUST_CHECK;
int core_keep(struct core_made *m, struct err *e) MUST_CHECK; /* on failure it is gone */
int core_drop(struct core_made *m, struct err *e)
	MUST_CHECK; /* ends the machine and forgets the name */

/* Whether NAME is still ID's, asked when the machine is there. -ECANCELED + ERR_CONFLICT: it was removed meanwhile. */
int core_still_recorded(const char *name, const char *id, struct err *e) MUST_CHECK;

/*
 * Removes the machine, then forgets the name: one that could not be removed can still be named. Also what somebody makes of
 * that name just now.
 */
int core_remove(const struct core_named *n, struct err *e) MUST_CHECK;

/*
 * Copies of SRC under NAMES, which are recorded first; the names of those that failed are forgotten again. RET has
 * room for N. Negative: none was made. 0: see the result of each.
 */
struct core_child {
	struct sandbox_child child; /* points into what follows */
	char name[SANDBOX_NAME_MAX + 1];
	char id[SANDBOX_ID_MAX + 1];
};
int core_branch(const struct core_named *src, const char *const *names, size_t n,
		struct progress *p, int64_t limit_ns, struct core_child *ret, struct err *e)
	MUST_CHECK;

/* The same for one sandbox NAME that begins with a snapshot of B. -ESTALE + ERR_CONFLICT: its memory does not fit. */
int core_restore(const struct backend *b, const char *snapshot, const char *name, unsigned flags,
		 struct progress *p, int64_t limit_ns, struct core_child *ret, struct err *e)
	MUST_CHECK;

/*
 * What sandbox R is of, for people: of a local one NAME:VERSION, however it was made, when I (may be NULL) says so; else what is
 * recorded. Borrowed from either; NULL: not known.
 */
const char *core_image_name(const struct state_record *r, const struct sandbox_info *i);

/* An image as commands and tools tell it; NULL: memory. */
cJSON *core_image_json(const struct image_info *i);
/* The same of NAME:VERSION, or of the newest version of NAME, or what the platform itself says of it; the caller's. -ENOENT + ERR_NOT_FOUND when there is none. */
int core_image_find(const struct image_ops *ops, const char *image, cJSON **ret, struct err *e)
	MUST_CHECK;

/* "asb-run-<8 hex digits>" */
int core_run_name(char ret[static SANDBOX_NAME_MAX + 1], struct err *e) MUST_CHECK;

/*
 * While something long goes on: SIGINT, SIGTERM and SIGHUP set a flag instead of ending us (those
 * that were ignored stay so); a second one of the same kind ends us after all. core_cancel_end
 * blocks the signals again, so that one that comes in between is neither lost nor deadly.
 */
void core_cancel_begin(struct progress *p);
void core_cancel_end(void);
void core_cancel_undo(void); /* instead: signals do again what they did before core_cancel_begin */
int core_cancelled(void);    /* the signal, or 0 */
/* Ends the process by the signal that interrupted it, so that a shell sees it. */
NORETURN void core_die_of(int sig);

#endif
