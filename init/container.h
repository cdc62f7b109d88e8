/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_CONTAINER_H
#define INIT_CONTAINER_H

#include "lib/compiler.h"

/* Exit statuses of our own; else it is the command's, 128 + n for a signal. As docker run's. */
enum container_exit {
	CONTAINER_EXIT_USAGE = 125, /* asb-init itself could not do its work */
	CONTAINER_EXIT_NOT_EXECUTABLE = 126,
	CONTAINER_EXIT_NOT_FOUND = 127,
};

/*
 * Entry point of a container: as PID 1, or as any process (then it becomes the subreaper of what it
 * starts). ARGV is the image's own command, borrowed, or NULL. Returns the exit status.
 */
int container_main(char **argv) MUST_CHECK;

#endif
