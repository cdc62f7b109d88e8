/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_DOCKERTEXT_H
#define ASB_AWS_DOCKERTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"
#include "lib/compiler.h"

/* The text of a Dockerfile as instructions. Pure. Source: the Dockerfile reference of Docker; BuildKit's parser where that says nothing. */
struct dockertext {
	char *all, *rest; /* owned; points into it */
	unsigned n;	  /* line of what was read last */
	unsigned line;	  /* at which the instruction begins */
	char escape;	  /* of the directive; else '\\' */
	bool unsure;	  /* nobody can say what comes after the last instruction */
};

/* -ENOMEM. dockertext_done in any case. */
int dockertext_init(struct dockertext *t, const char *text, size_t n) MUST_CHECK;
void dockertext_done(struct dockertext *t);

/*
 * The next instruction into RET, its continued lines joined by a space; the text of here-documents is passed over. 1; 0: none is
 * left, or what follows cannot be told apart (UNSURE); -ENOSPC: it is larger than RET's cap.
 */
int dockertext_next(struct dockertext *t, struct buf *ret) MUST_CHECK;

#endif
