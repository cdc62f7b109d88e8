/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BACKEND_H
#define ASB_BACKEND_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/image.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Where sandboxes live. Both backends implement this table; commands, MCP and SDKs know nothing
 * else. A NULL operation is one that the backend cannot do: core refuses it by name before anything
 * starts.
 */

#define SANDBOX_NAME_MAX  128
#define SANDBOX_ID_MAX	  256
#define SANDBOX_IMAGE_MAX 256

enum sandbox_state {
	SANDBOX_UNKNOWN,
	SANDBOX_PENDING, /* being created or started */
	SANDBOX_RUNNING,
	SANDBOX_SUSPENDING,
	SANDBOX_SUSPENDED, /* `asb stop`: continues where it was */
	SANDBOX_TERMINATING,
	SANDBOX_TERMINATED, /* no machine behind the record; a local one can be started from its
			       disk */
	SANDBOX_STATE_COUNT
};

/* "RUNNING", …: AWS's names (Lambda MicroVMs API, MicrovmState). Static storage. */
const char *sandbox_state_name(enum sandbox_state s);

enum net_mode { NET_NONE, NET_USER };

struct sandbox_naming { /* what a platform calls a new machine; borrowed */
	const char *id;
	const char *endpoint, *region; /* NULL = it has none */
	const char *image;	       /* what it really started from */
};

struct sandbox_spec { /* what create and run ask for; all strings borrowed */
	const char *name;
	const char *image; /* "base", "base:2"; an ARN on aws */
	uint32_t cpus;
	uint64_t memory_mib;
	enum net_mode net;
	char *const *env;	 /* "K=V", NULL-terminated, for every command in it; NULL = none */
	bool ephemeral;		 /* ends with its owner: `asb run` */
	bool cold;		 /* boots, and neither uses nor leaves a template */
	int64_t idle_timeout_ns; /* suspended after so long without traffic and commands; 0 = never */
	int64_t max_duration_ns; /* ended after so long, suspended time included; 0 = never */
	/* Of the platform; NULL = as configured, or none. */
	const char *region, *role, *egress;
	const char *const *ingress; /* what lets requests in, as --ingress has it; none = HTTP */
	unsigned ingress_len;
	/*
	 * Called as soon as the platform has given the machine an id of its own, before anything is waited for: the
	 * record is to have that one from now on. Negative: the machine is ended again. NULL: not wanted.
	 */
	int (*named)(void *arg, const struct sandbox_naming *n, struct err *e);
	void *named_arg;
	/* For an image that is being built: when it boots, a template must come of it; when it starts from one, its
	 * validate hook must pass. */
	bool build;
};

struct sandbox_info { /* what a backend says of one sandbox; no pointers */
	char name[SANDBOX_NAME_MAX + 1];
	char id[SANDBOX_ID_MAX + 1]; /* local: "local-<16 hex>"; aws: "microvm-…" */
	char image[SANDBOX_IMAGE_MAX + 1];
	enum sandbox_state state;
	uint32_t cpus;
	uint64_t memory_mib;
	enum net_mode net;
	bool ephemeral;
	int64_t created_s;			  /* Unix time; 0 = unknown */
	int64_t idle_timeout_ms, max_duration_ms; /* 0 = none */
	int64_t ends_ms;  /* Unix time at which max_duration ends it; 0 = never, or not known */
	char accel[8];	  /* "kvm", "tcg"; "" where it does not apply */
	char region[48];  /* of the platform; "" = it has none, or it was not asked for */
	char reason[256]; /* why it ended, in the platform's words; "" = nothing to tell */
};

/* Told while something slow goes on: STAGE is a short fixed word ("qemu", "kernel", "init",
 * "agent"), MS the time since start. */
struct progress {
	void (*fn)(void *arg, const char *stage, int64_t ms);
	void *arg;
	/* Set by a signal handler when the user wants out; NULL = never. Looked at whenever a wait
	 * is interrupted (EINTR) and at least every 200 ms: the operation then undoes what it did
	 * and returns -EINTR. */
	const volatile sig_atomic_t *cancel;
};

/* One that is to begin as a copy of another; strings borrowed. RESULT and ERR: what became of it. */
struct sandbox_child {
	const char *name, *id;
	int result;
	int lock; /* the backend's own, between making and starting it */
	struct err err;
};

/* --- snapshots: kept copies of a sandbox under names of their own --- */

enum snapshot_flags {
	SNAPSHOT_DISK = 1 << 0, /* no memory: what comes of it boots */
};

struct snapshot_info { /* no pointers */
	char name[SANDBOX_NAME_MAX + 1];
	char source[SANDBOX_NAME_MAX + 1]; /* the sandbox that it is of */
	char image[SANDBOX_IMAGE_MAX + 1]; /* with the version */
	bool memory;
	uint32_t cpus;
	uint64_t memory_mib;
	int64_t created_s;
	uint64_t bytes,
		disk_bytes; /* lengths of its files; what they have on the disk, shared or not */
	char broken[256];   /* why it cannot be used, or "" */
};

struct snapshot_ops {
	/* Of sandbox ID, under NAME; durable. A running one runs on, a suspended one stays so; of one that has ended only
	 * a SNAPSHOT_DISK can be made. On failure nothing of it remains. */
	int (*create)(const char *id, const char *name, unsigned flags, const struct progress *p,
		      int64_t deadline_ns, struct err *e);
	/* CHILD, which is recorded, begins with it. Negative: nothing of CHILD remains. -ESTALE + ERR_CONFLICT: its memory
	 * does not fit this machine. */
	int (*restore)(const char *name, struct sandbox_child *child, unsigned flags,
		       const struct progress *p, int64_t deadline_ns, struct err *e);
	int (*list)(int (*fn)(void *arg, const struct snapshot_info *i), void *arg, struct err *e);
	int (*inspect)(const char *name, char **ret_json, struct err *e); /* caller frees */
	int (*remove)(const char *name, struct err *e);
	/* To and from one file. NAME of load: NULL = that in the file. -ESTALE: as restore. */
	int (*save)(const char *name, int fd, const struct progress *p, struct err *e);
	int (*load)(int fd, const char *name, unsigned flags, const struct progress *p,
		    char ret_name[SANDBOX_NAME_MAX + 1], struct err *e);
};

/*
 * How requests reach a port in a guest when it is behind a network: HTTPS to a host, with headers that let them in. Owned;
 * backend_route_done.
 */
#define BACKEND_PORTS_MAX 65
struct backend_ports {
	uint16_t port
		[BACKEND_PORTS_MAX]; /* requests go to the first; the others are let in as well */
	size_t len;
};
#define BACKEND_URL_MAX	      320
#define BACKEND_ROUTE_HEADERS 4
struct backend_route {
	char url[BACKEND_URL_MAX];		  /* "https://host[:port]", without a path */
	char *headers[BACKEND_ROUTE_HEADERS + 1]; /* "Name: value" */
	char *protocols; /* what a WebSocket offers instead of the headers: "a, b"; NULL = it sends the headers */
	const char *
		reserved; /* headers that begin so are the platform's, and nobody else's; NULL = none */
	/* The bodies of the 403 by which the platform refuses these headers, NULL-terminated; NULL = they are not known. */
	const char *const *refusals;
	const char *ca_bundle; /* borrowed; NULL = the system's */
};
extern const struct backend_ports backend_agent_port;
void backend_route_done(struct backend_route *r); /* wipes the headers too */

struct log_wish {	   /* borrowed */
	int64_t since_ns;  /* Unix time: what is older may be left out; INT64_MIN = nothing */
	uint64_t tail;	   /* what comes before the last TAIL lines, too; UINT64_MAX = nothing */
	bool wait;	   /* that there is none yet is no failure: it is empty */
	const char *group; /* a log group of CloudWatch; NULL = the one of the sandbox's image */
};

/*
 * The log of a sandbox, open for reading from its start. Each line begins with its time, "YYYY-MM-DDTHH:MM:SS.uuuuuuZ "; what came last
 * may be no whole line yet. The file grows, and may lose its oldest lines in place.
 */
struct backend_log { /* backend_log_done */
	int fd;	     /* owned; all of them read it with pread, or read it once */
	/* Gets what has come since, where the file does not grow by itself; else NULL. Blocks. */
	int (*more)(struct backend_log *l, struct err *e);
	bool anew; /* set by more(): what was in the file has been dropped, reading goes on at 0 */
	void (*done)(struct backend_log *l);
	void *of;
};
#define BACKEND_LOG_NONE \
	{                \
		.fd = -1 \
	}
void backend_log_done(struct backend_log *l);

struct backend_owner; /* a sandbox that was just created and is still the caller's to lose */

struct backend {
	const char *name; /* "local", "aws" */

	/* REGION and PROFILE (borrowed for the process's life; NULL = not given) are the default of all that follows. NULL: it
	 * is in one place. */
	void (*place)(const char *region, const char *profile);

	/*
	 * Makes the sandbox under SPEC and ID (which the caller has recorded already) and waits
	 * until commands can run in it. On failure, or if the caller dies before keep(), nothing of
	 * it remains; but for -ENOTRECOVERABLE: it could not be ended again, its record must stay.
	 * DEADLINE_NS: loop_now() time.
	 */
	int (*create)(const struct sandbox_spec *spec, const char *id, const struct progress *p,
		      int64_t deadline_ns, struct backend_owner **ret, struct err *e);
	/* The sandbox now outlives the caller. Frees O. */
	int (*keep)(struct backend_owner *o, struct err *e);
	/* Ends the sandbox and removes all of it, as far as that needs O; remove() does the rest. Frees O. */
	void (*drop)(struct backend_owner *o);

	int (*info)(const char *id, struct sandbox_info *ret,
		    struct err *e); /* -ENOENT + ERR_NOT_FOUND: no such machine */
	/* Calls FN for each sandbox of this backend, recorded or not. Non-zero from FN stops. EVERY: also of the place that is
	 * configured, when all records are of others. */
	int (*list)(bool every, int (*fn)(void *arg, const struct sandbox_info *i), void *arg,
		    struct err *e);
	/* The platform's own description, as JSON text (caller frees). */
	int (*inspect)(const char *id, char **ret_json, struct err *e);

	int (*suspend)(const char *id, struct err *e);
	int (*resume)(const char *id, const struct progress *p, int64_t deadline_ns,
		      struct err *e); /* also from TERMINATED */
	/*
	 * For a client that is about to connect: resumes ID when it is suspended, and waits for a start or a
	 * suspension that is under way. Until *RET_HOLD (owned; -1: not needed) is closed it is not suspended for
	 * being idle. One that has ended is left alone (0), connect() tells. NULL: the platform does that by itself.
	 */
	int (*wake)(const char *id, const struct progress *p, int64_t deadline_ns, int *ret_hold,
		    struct err *e);
	int (*power_off)(const char *id, int64_t grace_ns,
			 struct err *e); /* orderly; the disk stays */
	int (*remove)(const char *id,
		      struct err *e); /* ends it and removes all; fine when it is gone already */

	/* remove(), of a machine without a record that list() told: where it told it. NULL: there is one place. */
	int (*remove_listed)(const struct sandbox_info *i, struct err *e);

	/*
	 * Makes CHILDREN, which the caller has recorded, as copies of ID from one instant, and starts
	 * them; ID runs on (one that is suspended stays so). Negative: nothing was made. 0: each child
	 * has its own result, and of one that failed nothing remains.
	 */
	int (*branch)(const char *id, struct sandbox_child *children, size_t n,
		      const struct progress *p, int64_t deadline_ns, struct err *e);

	/*
	 * Where there is a route, HTTP to the guest takes it, and not connect(). FRESH: what the last one carried was refused,
	 * so it is to have new credentials.
	 */
	int (*route)(const char *id, const struct backend_ports *ports, bool fresh,
		     struct backend_route *ret, struct err *e);
	/*
	 * A connected stream to PORT in the guest, blocking, CLOEXEC; the caller owns *RET_FD. An end of file alone
	 * does not tell that the guest has ended it, for a stream that was cut looks the same: when it has, one byte
	 * is in *RET_END before (a socket, owned; -1: nobody tells). NULL: the caller's protocol knows its own end.
	 */
	int (*connect)(const char *id, uint16_t port, int64_t deadline_ns, int *ret_fd,
		       int *ret_end, struct err *e);

	/* Console or log output; *RET is BACKEND_LOG_NONE before. -ENOENT: there is no such machine; -ENODATA: E tells why it has
	 * no log. */
	int (*open_log)(const char *id, const struct log_wish *w, struct backend_log *ret,
			struct err *e);

	/* Removes what crashed processes left behind (unlocked folders of sandboxes nobody
	 * records, names without a machine). Cheap when there is none. Call it before names are recorded for create, restore or
	 * branch: from there until these have made their machines nobody else collects the names. */
	void (*collect)(void);
	/* The same and more, on request: PRUNE_… flags. */
	int (*prune)(unsigned flags, prune_fn *fn, void *arg, struct err *e);

	const struct snapshot_ops *snapshots; /* NULL: it has none */

	/* CPUs, memory and network of a sandbox are its image's: options for them are refused. */
	bool size_of_image;

	const struct image_ops *images; /* NULL: it has no images that asb could make */
};

extern const struct backend backend_local, backend_aws;

/*
 * What a backend does by itself and succeeds at, such as asking for new credentials, in words for a log; never a secret. FN
 * NULL (as at first): nobody listens. One listener a process.
 */
void backend_listen(void (*fn)(void *arg, const char *text), void *arg);
void backend_tell(const char *fmt, ...) PRINTF(1, 2);

/*
 * FN is called while a backend waits or reads a lot, at least every second, for who tells others that it goes on; it must not take
 * long. FN NULL (as at first): nobody does. One a process.
 */
void backend_on_turn(void (*fn)(void *arg), void *arg);
void backend_turn(void);

/* The backend that a recorded sandbox with this ID lives on: "local-…", anything else is AWS's. */
const struct backend *backend_of_id(const char *id);
/* S is the id of a machine, and not a name: it may be asked for without a record. */
bool backend_is_id(const char *s);
const struct backend *backend_by_name(const char *name);

#endif
