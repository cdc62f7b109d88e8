/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "host/core/core.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
static volatile sig_atomic_t came;

static void on_signal(int sig)
{
	came = sig;
}

static void mask(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaddset(&set, signals[i]);
	(void)sigprocmask(how, &set, NULL);
}

void core_cancel_begin(struct progress *p)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction old, sa = { .sa_flags = (int)SA_RESETHAND };

		sa.sa_handler = on_signal;
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &sa, NULL);
	}
	mask(SIG_UNBLOCK);
	p->cancel = &came;
}

void core_cancel_end(void)
{
	mask(SIG_BLOCK);
}

int core_cancelled(void)
{
	return came;
}

void core_die_of(int sig)
{
	(void)signal(sig, SIG_DFL);
	mask(SIG_UNBLOCK);
	(void)raise(sig);
	_exit(128 + sig);
}
