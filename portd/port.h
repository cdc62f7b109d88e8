/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PORTD_PORT_H
#define ASB_PORTD_PORT_H

#include "../lib/compiler.h"
#include "../lib/err.h"

/*
 * The virtio-serial port called NAME: looks through CLASS_DIR ("/sys/class/virtio-ports") and opens
 * the device of the same name in DEV_DIR ("/dev"), non-blocking. The driver may still be looking
 * for its ports: waits up to WAIT_MS. 0, or a negative errno with a message.
 */
int port_open(const char *class_dir, const char *dev_dir, const char *name, int wait_ms,
	      int *ret_fd, struct err *e) MUST_CHECK;

/* For tests: PATH is a character device, or a unix socket to connect to. */
int port_open_path(const char *path, int *ret_fd, struct err *e) MUST_CHECK;

#endif
