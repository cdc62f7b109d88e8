/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "archive.h"
#include "fsop.h"
#include "worker.h"

/* Everything that a worker can do. */
const struct work_verb work_verbs[] = {
	{ "archive-out", archive_out }, { "archive-in", archive_in },
	{ "list", fsop_list },		{ "remove", fsop_remove },
	{ "copy", fsop_copy },		{ "chmod", fsop_chmod },
	{ "sync", fsop_sync },		{ NULL, NULL },
};
