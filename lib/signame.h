/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_SIGNAME_H
#define ASB_SIGNAME_H

/* Names of the standard signals (signal(7)), whose numbers are the same on x86_64 and aarch64. */

/* The number of a name in capitals, with or without "SIG"; 0 when it is none. */
int signame_number(const char *name);

/* "TERM"; NULL for a number without a name. Static storage. */
const char *signame(int sig);

#endif
