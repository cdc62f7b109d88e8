/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_GUESTDIR_H
#define ASB_AWS_GUESTDIR_H

#include "host/aws/artefact.h"
#include "host/aws/sigv4.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* A guest folder as `asb image build` and `asb infra up` send it to a build: packed, named, and its Dockerfile looked through. */
struct guestdir { /* guestdir_done */
	struct buf zip;
	char sha[SIGV4_HASH_LEN + 1]; /* of the zip */
	char key[ARTEFACT_KEY_MAX];   /* of the object in the bucket */
	struct err fault;	      /* what a build is known to fail at; ERR_NONE = nothing */
	struct err note;	      /* what it may fail at */
};

/*
 * DIR for the image IMAGE. ERR_NOT_FOUND without a Dockerfile; a fault is no error yet. Ends early, with -EINTR, when *CANCEL (may be NULL)
 * is set. RET is to be released in any case; all zero will do before that.
 */
int guestdir_read(const char *dir, const char *image, const volatile sig_atomic_t *cancel,
		  struct guestdir *ret, struct err *e) MUST_CHECK;
void guestdir_done(struct guestdir *g);

/* 0, or the fault, with the option that builds all the same. */
int guestdir_refusal(const struct guestdir *g, struct err *e) MUST_CHECK;

#endif
