/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_OPTS_H
#define ASB_CLI_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/cli/spec.h"
#include "lib/compiler.h"
#include "lib/err.h"

#define CLI_NAMES_MAX 1024
#define CLI_MANY_MAX  4096

struct opt_value {
	bool set;
	const char *text; /* borrowed from argv; the default when not set */
	uint64_t number;  /* TYPE_UINT, TYPE_MIB, TYPE_SIGNAL */
	int64_t ns;	  /* TYPE_SECONDS; TYPE_CPUS: billionths of a CPU; TYPE_SINCE: Unix time */
	const char **all; /* every value of an option that may be repeated, in order; owned */
	unsigned all_len;
};

struct cli {
	const struct command *cmd; /* NULL: only global options were given, or only a group */
	const char *group;	   /* the first word of a command of two; points into argv */
	struct opt_value val[OPT_COUNT];
	char *const *
		names; /* the plain arguments before the command, in order; points into own_names */
	unsigned names_len;
	char *const
		*argv; /* words of ARG_COMMAND, NULL-terminated; points into the caller's argv */
	unsigned argc;
	char **own_names;
};

/*
 * Parses ARGV (argv[0] is the program). Options may stand before and after the sandbox's name; "--"
 * ends them, and so does the first word of a command to run in the guest. Every value is checked
 * here, so that commands see only good ones. 0, or -EINVAL with ERR_USAGE; C->cmd is set as soon as
 * it is known, for the usage line. cli_done in both cases.
 */
int cli_parse(struct cli *c, int argc, char *const *argv, struct err *e) MUST_CHECK;
void cli_done(struct cli *c);

/* The number of a signal given as number or as name, in any case, with or without SIG. 0: none. */
int cli_signal(const char *s);

#endif
