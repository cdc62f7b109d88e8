/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_NET_CURLIO_H
#define ASB_NET_CURLIO_H

#include <curl/curl.h>

#include "lib/compiler.h"
#include "lib/loop.h"

/*
 * libcurl's multi interface in a loop: sockets become watches, its time-out a timer. Who sets up the easy handles, and what
 * becomes of their answers, is the business of its users: host/agent/http.c, host/aws/fetch.c and host/proxy/.
 */
struct curlio;

struct curlio_call { /* embedded in the caller's object, like a watch */
	CURL *easy;  /* borrowed */
	/* The transfer is over; the handle still belongs to the curlio. May add and remove calls, this one too. */
	void (*done)(struct curlio_call *c, CURLcode code);
	void *arg; /* the caller's */
};

int curlio_open(struct loop *l, struct curlio **ret) MUST_CHECK; /* 0 or -ENOMEM */
void curlio_free(struct curlio *io); /* after all calls were removed; NULL is fine */

/* Takes CURLOPT_PRIVATE of the handle. 0 or -ENOMEM. Not from a callback of libcurl, nor is curlio_remove. */
int curlio_add(struct curlio *io, struct curlio_call *c) MUST_CHECK;
void curlio_remove(struct curlio *io, struct curlio_call *c); /* ends it without a word */
/* After curl_easy_pause: what it has delivered is followed by a look at the socket. */
void curlio_kick(struct curlio *io);

#endif
