/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_VMDIR_H
#define ASB_LOCAL_VMDIR_H

#include "host/local/local.h"
#include <stdbool.h>
#include <stdint.h>

#include "host/backend.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * The folder of a VM, <state>/local/vms/<id>/ (docs/architecture.md, "Files of the local backend").
 * vm.json is what it was asked to be and never changes; status.json what has become of it, written
 * by its supervisor. Whether there is a supervisor, only the lock tells: it is held as long as that
 * process lives, whatever it dies of.
 */

struct vm_config { /* vm.json */
	char id[SANDBOX_ID_MAX + 1];
	char name[SANDBOX_NAME_MAX + 1];
	char image[SANDBOX_IMAGE_MAX + 1];
	uint64_t memory_mib;
	int64_t created_s;
	uint32_t cpus;
	enum net_mode net;
	bool ephemeral;
	bool template; /* may start from one, and may leave one behind */
	bool build;    /* of an image: the template, or else the validate hook, must come off */
	uint64_t idle_timeout_ms, max_duration_ms; /* 0 = none */
	cJSON *env;				   /* owned object of strings, or NULL */
};
void vm_config_done(struct vm_config *c);

struct vm_status { /* status.json */
	enum sandbox_state state;
	char accel[8];
	char reason[256];
	int64_t started_ms; /* Unix time at which it booted last; 0 = when it was made */
};

#define VM_ENV_MAX     (64U << 10)		    /* bytes of vm.json's env as JSON */
#define VM_TIME_MAX_MS (10ULL * 366 * 86400 * 1000) /* any of its durations */

#define VMDIR_HIDDEN ".new-" /* before the id while the folder is being made */
#define VMDIR_GONE   ".old-" /* while it is being removed */

bool vmdir_is_id(const char *id); /* "local-" and 16 hex digits */
/* A random one. */
int vmdir_new_id(char ret[SANDBOX_ID_MAX + 1], struct err *e) MUST_CHECK;

/* <state>/local, <state>/local/PART; made when missing. */
int vmdir_base(char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;
int vmdir_part(const char *part, char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;
/* <state>/local/vms. When it is missing, vmdir_collect alone makes it, and only when no sandbox in it is recorded: else the disk
 * that they are on is not there, and names must not be lost for that. */
#define VMDIR_ROOT "vms"
int vmdir_root(char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;
int vmdir_present(struct err *e) MUST_CHECK; /* -ENOENT when it is missing, and what to do then */
int vmdir_path(const char *id, char ret[LOCAL_PATH_MAX], struct err *e) MUST_CHECK;
/* The path of PREFIX and NAME together, in PART. */
int vmdir_below(const char *part, const char *prefix, const char *name, char ret[LOCAL_PATH_MAX],
		struct err *e) MUST_CHECK;

/* What a new sandbox begins with: the template of KEY, if it is given and there; else, with SAVED, the memory and
 * devices in that folder below DIRFD (another sandbox's, or a snapshot) and a copy of DISK; else a copy of DISK alone. */
struct saved;
struct vm_source {
	const char *disk, *key, *saved; /* disk: a path; key, saved: NULL when not so */
	int dirfd;
	const struct saved *state; /* of that memory; NULL: state.json is beside it */
};

/*
 * Makes the folder of C with vm.json and what it begins with, under a hidden name until all of it is there, and locked from the first moment on. *RET_LOCK keeps the lock, also in processes
 * that inherit it. On failure nothing remains.
 */
int vmdir_create(const struct vm_config *c, const struct vm_source *from, int *ret_lock,
		 struct err *e) MUST_CHECK;

/* -ENOENT + ERR_NOT_FOUND when there is no such folder; else a descriptor of it. */
int vmdir_open(const char *id, int *ret_fd, struct err *e) MUST_CHECK;

/* Takes the lock, waiting up to WAIT_NS: -EWOULDBLOCK when another holds it, -ENOENT when the folder has been removed
 * meanwhile. vmdir_is_locked only looks. */
int vmdir_lock(int dirfd, int64_t wait_ns, int *ret_lock) MUST_CHECK;
bool vmdir_is_locked(int dirfd);

int vmdir_read_config(int dirfd, struct vm_config *ret, struct err *e)
	MUST_CHECK;					  /* vm_config_done */
void vmdir_read_status(int dirfd, struct vm_status *ret); /* PENDING when there is none */
int vmdir_write_status(int dirfd, const struct vm_status *s) MUST_CHECK; /* atomic, not durable */

/* What is known of the VM from its folder alone. */
int vmdir_info(const char *id, struct sandbox_info *ret, struct err *e) MUST_CHECK;

/* Removes the folder, for everybody else in one step. The caller holds the lock, or knows that nobody does. */
int vmdir_remove(const char *id, struct err *e) MUST_CHECK;

/* Calls FN with the id of each folder. Non-zero from FN stops and is returned. */
int vmdir_each(int (*fn)(void *arg, const char *id), void *arg, struct err *e) MUST_CHECK;

/* The VM outlives its maker from here on, also a crash of the machine (durable). */
int vmdir_keep(int dirfd) MUST_CHECK;
bool vmdir_is_kept(int dirfd);

/*
 * Removes what killed processes left: folders that nobody holds and that were never kept, or that
 * no record of state.json names, each with its record; and records that have no folder.
 */
void vmdir_collect(void);
/* The folders and records alone, with prune_flags; FN may be NULL. */
void vmdir_prune(unsigned flags, prune_fn *fn, void *arg);

/*
 * Between recording a name and making its folder a sandbox looks like one whose maker is dead. Whoever records names
 * says so before, and that its folders are made after (the end of the process says it too): nobody collects such names,
 * or a copy that another sandbox is made from, meanwhile. Waits a second at the most for another who collects.
 */
void vmdir_making(void);
void vmdir_made(void);

#endif
