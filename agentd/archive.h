/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_ARCHIVE_H
#define AGENTD_ARCHIVE_H

/* Verbs of the worker (worker.h): PATH, then options as "name=1". */
int archive_out(int argc, char **argv);
int archive_in(int argc, char **argv);

#endif
