/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_SPEC_H
#define ASB_CLI_SPEC_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The command line, described. The tables of commands (table.c) and of options (options.c) are the
 * only place where one is defined: parsing, help, usage errors, man pages, completions and `asb manifest` all read
 * it.
 */

enum opt_id {
	OPT_HELP,
	OPT_VERSION,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_BACKEND,
	OPT_REGION,
	OPT_PROFILE,
	OPT_ROLE,
	OPT_EGRESS,
	OPT_INGRESS,
	OPT_EVERY,
	OPT_IMAGE,
	OPT_CPUS,
	OPT_MEMORY,
	OPT_NET,
	OPT_NAME,
	OPT_ENV,
	OPT_ENV_FILE,
	OPT_WORKDIR,
	OPT_TIMEOUT,
	OPT_START_TIMEOUT,
	OPT_INTERACTIVE,
	OPT_NO_STDIN,
	OPT_FORCE,
	OPT_NAMES,
	OPT_GRACE,
	OPT_MAN,
	OPT_NEW_FILE,
	OPT_OVERWRITE,
	OPT_CONFIG,
	OPT_STACK,
	OPT_ALL_STACKS,
	OPT_REBUILD,
	OPT_PARALLELISM,
	OPT_YES,
	OPT_FORCE_STACK,
	OPT_TTY,
	OPT_NO_TTY,
	OPT_USER,
	OPT_DETACH,
	OPT_DETACH_KEYS,
	OPT_SECCOMP,
	OPT_EXEC_MEMORY,
	OPT_EXEC_CPUS,
	OPT_PIDS,
	OPT_ATTACH,
	OPT_OFFSET,
	OPT_NO_TRUNC,
	OPT_IDS,
	OPT_SIGNAL,
	OPT_TO,
	OPT_FOLLOW,
	OPT_TAIL,
	OPT_SINCE,
	OPT_TIMESTAMPS,
	OPT_LOG_GROUP,
	OPT_ADDRESS,
	OPT_REMOTE_PORT,
	OPT_LOCAL_PORT,
	OPT_POLL_INTERVAL,
	OPT_ARCHIVE,
	OPT_FOLLOW_LINK,
	OPT_WATCH,
	OPT_INTERVAL,
	OPT_WAIT_TIMEOUT,
	OPT_NO_TEMPLATE,
	OPT_NEW_NAME,
	OPT_IDLE_TIMEOUT,
	OPT_MAX_DURATION,
	OPT_READ_ONLY,
	OPT_NO_NETWORK,
	OPT_PRINT_CONFIG,
	OPT_DISK_ONLY,
	OPT_IMAGE_NAME,
	OPT_FROM,
	OPT_BUCKET,
	OPT_BUILD_ROLE,
	OPT_NO_CHECK,
	OPT_MANAGED,
	OPT_FORCE_IMAGE,
	OPT_NOT_ASK,
	OPT_DRY_RUN,
	OPT_ALL,
	OPT_COUNT
};

enum opt_type {
	TYPE_FLAG,
	TYPE_TEXT,    /* any text that is not empty */
	TYPE_UINT,    /* decimal, min to max */
	TYPE_MIB,     /* memory: MiB or with a suffix; min to max in MiB */
	TYPE_SECONDS, /* "2", "0.5"; at most max */
	TYPE_NAME,    /* a sandbox's name */
	TYPE_CHOICE,
	TYPE_ENV,     /* K=V or K */
	TYPE_PATH,    /* absolute path in the guest */
	TYPE_FILE,    /* path on this machine */
	TYPE_CPUS,    /* "2", "0.5": a number of CPUs; at most max */
	TYPE_EXEC,    /* id of a command that runs in a sandbox, or its begin */
	TYPE_SIGNAL,  /* name or number of a signal */
	TYPE_KEYS,    /* detach keys: docker's syntax, see keys.h */
	TYPE_ADDRESS, /* numeric IP address */
	TYPE_SINCE,   /* a moment: see since.h */
	TYPE_COUNT
};

struct opt_spec {
	const char *name; /* long form without "--" */
	char short_name;  /* 0 = none */
	enum opt_type type;
	bool many;	   /* may be given several times */
	const char *arg;   /* what the value is called in help; NULL for a flag */
	const char *def;   /* default as text; NULL = none */
	const char *help;  /* one line, no full stop */
	uint64_t min, max; /* TYPE_UINT, TYPE_MIB, TYPE_SECONDS */
	const char *const *choices;
};

enum arg_kind {
	ARG_SANDBOX,  /* a sandbox's name, checked */
	ARG_SNAPSHOT, /* a snapshot's, of the same form */
	ARG_NAME,     /* a new name for either */
	ARG_FILE,     /* a path here, or "-" */
	ARG_IMAGE,
	ARG_TOPIC,  /* a command's name */
	ARG_CHOICE, /* one of choices */
	ARG_EXEC,   /* as TYPE_EXEC */
	ARG_SIGNAL, /* as TYPE_SIGNAL */
	ARG_WORD,   /* anything */
	ARG_COPY,   /* NAME:PATH, a path here, or "-" */
	ARG_PORT,   /* [[ADDRESS:]LOCAL:]REMOTE, see ports.h */
	ARG_COMMAND /* everything from here on, options too */
};

struct arg_spec {
	const char *name; /* "NAME" */
	enum arg_kind kind;
	bool optional, many;
	const char *help;
	const char *const *choices;
};

struct cli; /* what was parsed: opts.h */

struct command {
	const char *name;	     /* one word, or the word of its group, a space and one more */
	const char *summary;	     /* one line, no full stop */
	const char *about;	     /* paragraphs for help and manual, separated by blank lines */
	const struct arg_spec *args; /* ends at name == NULL */
	const enum opt_id *opts;     /* ends at OPT_COUNT */
	const char *const *examples; /* ends at NULL */
	int (*run)(const struct cli *c); /* returns the exit status */
	bool hidden;
	bool raw;    /* parses its own words (the supervisor) */
	int failure; /* exit status when asb itself fails: 1, or 125 */
};

extern const struct opt_spec cli_opts[OPT_COUNT];
extern const struct command cli_commands[]; /* ends at name == NULL */
extern const enum opt_id cli_global_opts[]; /* taken before the command's name; ends at OPT_COUNT */

/* Names and values that several pages list. */
struct cli_pair {
	const char *name, *text;
};
extern const struct cli_pair cli_exit_codes[]; /* end at name == NULL */
extern const struct cli_pair cli_environment[];
extern const struct cli_pair cli_files[];

const struct command *cli_find(const char *name); /* NULL when there is none; hidden ones too */
/* Whether C is one of the commands that begin with the word GROUP; with NULL, whether it is of any. */
bool cli_in_group(const struct command *c, const char *group);
bool cli_is_group(const char *word);
/* The first of the commands of its group, in the order of the table. */
bool cli_leads_group(const struct command *c);
bool cli_takes(const struct command *c, enum opt_id id);

#endif
