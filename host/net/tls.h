/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_NET_TLS_H
#define ASB_NET_TLS_H

#include <curl/curl.h>
#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Whom asb trusts when it speaks TLS, and how: the certificates of a PEM bundle, decoded once and kept for the process's life;
 * TLS 1.2; host names are checked. This is the only file that knows that libcurl's TLS is BearSSL.
 */
struct tls;

/*
 * The anchors of the bundle FILE, or, when it is NULL, of $SSL_CERT_FILE or the first system bundle that is there. Static:
 * the same FILE gives the same anchors, not to be freed. ERR_INVALID when a file has no certificate that can be used, ERR_IO
 * when it cannot be read.
 */
int tls_trust(const char *file, struct tls **ret, struct err *e) MUST_CHECK;

/* How many anchors there are, and the file they came from. */
size_t tls_anchors(const struct tls *t);
const char *tls_file(const struct tls *t);

/* Makes EASY verify against T (https URLs; T must not be NULL then). 0 or -ENOMEM. */
int tls_use(struct tls *t, CURL *easy) MUST_CHECK;

#endif
