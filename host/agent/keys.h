/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_KEYS_H
#define ASB_AGENT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"

/*
 * Detach keys, in docker's syntax ("docker attach", --detach-keys): a row of keys separated by
 * commas, each one character or ctrl-X with X a letter or one of @ [ \ ] ^ _. An empty text means
 * none.
 */
#define KEYS_MAX 16

struct keys {
	unsigned char seq[KEYS_MAX];
	size_t len;  /* 0 = none */
	size_t held; /* how many of them have been typed and are kept back */
};

/* 0, or -EINVAL for a text that is no such row. */
int keys_parse(struct keys *k, const char *text) MUST_CHECK;

/*
 * One typed byte. Puts what goes to the command into OUT and its number (0 to KEYS_MAX) into
 * *RET_N; bytes that may begin the row are kept back until it is clear. True when the row is whole.
 */
bool keys_feed(struct keys *k, unsigned char c, unsigned char out[static KEYS_MAX], size_t *ret_n);

#endif
