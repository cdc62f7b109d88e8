/* SPDX-License-Identifier: Apache-2.0 */
#include "signame.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "compiler.h"
#include "str.h"

static const struct {
	char name[7]; /* not pointed to: a pointer in a constant costs 32 bytes of the program */
	signed char sig;
} signals[] = {
	{ "HUP", SIGHUP },	 { "INT", SIGINT },   { "QUIT", SIGQUIT },   { "ILL", SIGILL },
	{ "TRAP", SIGTRAP },	 { "ABRT", SIGABRT }, { "BUS", SIGBUS },     { "FPE", SIGFPE },
	{ "KILL", SIGKILL },	 { "USR1", SIGUSR1 }, { "SEGV", SIGSEGV },   { "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE },	 { "ALRM", SIGALRM }, { "TERM", SIGTERM },   { "CHLD", SIGCHLD },
	{ "CONT", SIGCONT },	 { "STOP", SIGSTOP }, { "TSTP", SIGTSTP },   { "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU },	 { "URG", SIGURG },   { "XCPU", SIGXCPU },   { "XFSZ", SIGXFSZ },
	{ "VTALRM", SIGVTALRM }, { "PROF", SIGPROF }, { "WINCH", SIGWINCH }, { "IO", SIGIO },
	{ "PWR", SIGPWR },	 { "SYS", SIGSYS },
};

int signame_number(const char *name)
{
	if (str_starts(name, "SIG"))
		name += 3;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (!strcmp(signals[i].name, name))
			return signals[i].sig;
	return 0;
}

const char *signame(int sig)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (signals[i].sig == sig)
			return signals[i].name;
	return NULL;
}
