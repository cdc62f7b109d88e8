/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_RELAY_H
#define ASB_AGENT_RELAY_H

#include "lib/compiler.h"

/*
 * Joins two connected stream sockets until both directions have ended: bytes go both ways, the end
 * of one direction is passed on as such (shutdown(2)) while the other goes on, and a slow reader
 * holds up only its writer. A peer that has broken is dropped, what it sent before still arrives.
 * A is the one that others on
 * this machine have connected to. B_END: what tells an end of B from a cut (backend.h, connect), or -1. Blocks; the
 * sockets are made non-blocking and stay the caller's. 0, or negative errno when a side broke or B was cut.
 */
int relay(int a, int b, int b_end) MUST_CHECK;

#endif
