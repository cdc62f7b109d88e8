/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_H
#define ASB_LOCAL_H

/* What the command line needs of the local backend beside `backend_local` (host/backend.h). */

#define LOCAL_PATH_MAX 2048 /* of every path that the local backend makes */

/* `asb __supervise FOLDER …`: argv[0] is "__supervise". Returns the exit code. Started by the
 * backend only; its arguments are an affair between the two (host/local/spawn.c). */
int local_supervise_main(int argc, char **argv);

/* STATUS: "ok", "warn", "fail". Non-zero stops. */
typedef int local_doctor_fn(void *arg, const char *check, const char *status, const char *text);

/* One call of FN for each thing that a local sandbox needs. Returns what FN returned last. */
int local_doctor(local_doctor_fn *fn, void *arg);

#endif
