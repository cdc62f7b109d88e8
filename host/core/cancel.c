/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "host/core/core.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
static volatile sig_atomic_t came;
static struct sigaction before[ARRAY_LEN(signals)];
static sigset_t mask_before;

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
	(void)sigprocmask(SIG_BLOCK, NULL, &mask_before);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction sa = { .sa_flags = (int)SA_RESETHAND };

		sa.sa_handler = on_signal;
		if (sigaction(signals[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &sa, NULL);
	}
	mask(SIG_UNBLOCK);
	p->cancel = &came;
}

void core_cancel_end(void)
{
	mask(SIG_BLOCK);
}

void core_cancel_undo(void)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)sigaction(signals[i], &before[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &mask_before, NULL);
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
