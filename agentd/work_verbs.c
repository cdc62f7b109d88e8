/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "archive.h"
#include "worker.h"

/* Everything that a worker can do. */
const struct work_verb work_verbs[] = {
	{ "archive-out", archive_out },
	{ NULL, NULL },
};
