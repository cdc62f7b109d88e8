/* SPDX-License-Identifier: Apache-2.0 */
#include "runclock.h"

#include "limits.h"

/*
 * CLOCK_MONOTONIC stands still while a VM is stopped where the clock is the hypervisor's (kvm-clock, and
 * the time counter of emulation). Where it is a counter of the hardware (TSC as clock source under KVM, or
 * a restored snapshot), it jumps by the pause instead, and every time limit would be over at the first
 * moment after it. The guest is not told of a pause. But agentd is paused with it: a pulse that should
 * come each second and comes seconds late means that nothing ran meanwhile, or that agentd did not. What
 * it is late is not counted.
 */

static int64_t last, skipped; /* CLOCK_MONOTONIC of the last look; ns that were not counted */
static unsigned holders;
static struct loop_timer pulse;

int64_t runclock_now(void)
{
	int64_t now = loop_now();

	if (holders > 0 && now - last > LIMIT_PULSE_NS + LIMIT_PULSE_LATE_NS)
		skipped += now - last - LIMIT_PULSE_NS;
	last = now;
	return now - skipped;
}

static void on_pulse(struct loop_timer *t)
{
	(void)runclock_now();
	loop_arm(t->arg, t, LIMIT_PULSE_NS);
}

void runclock_hold(struct loop *l)
{
	(void)runclock_now();
	if (holders++ > 0)
		return;
	last = loop_now();
	pulse.fn = on_pulse;
	pulse.arg = l;
	loop_arm(l, &pulse, LIMIT_PULSE_NS);
}

void runclock_release(void)
{
	if (--holders == 0)
		loop_disarm(&pulse);
}
