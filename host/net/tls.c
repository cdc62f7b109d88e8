/* SPDX-License-Identifier: Apache-2.0 */
#include "host/net/tls.h"

#include <bearssl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/b64.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * libcurl would read and decode the whole bundle anew for each connection (20 to 60 ms for 145 roots), so the anchors are decoded
 * here and put into BearSSL's engine from CURLOPT_SSL_CTX_FUNCTION, which libcurl calls for each connection before the
 * handshake. What it had prepared for the verification is replaced, so what that would have done is done here: BearSSL's
 * "minimal" validation checks the chain, the dates and the name given to br_ssl_client_reset.
 *
 * An X.509 context is used by one handshake at a time and must live as long as it, which nobody tells us: each connection gets
 * its own, and they are kept in a list until the process ends. Renegotiation is off, so no other handshake follows. A
 * process makes few connections; CONTEXTS_MAX of them are reused in turn, far more than handshakes go on at once.
 *
 * BearSSL seeds itself from RDRAND alone on x86, and from a file elsewhere; bytes of getrandom(2) are mixed in.
 */

#define BUNDLE_MAX   (4U << 20)
#define ANCHORS_MAX  2048
#define CONTEXTS_MAX 64
#define SEED_LEN     32
#define BEGIN_CERT   "-----BEGIN CERTIFICATE-----"
#define END_DASHES   "-----END "

struct tls {
	char file[PATH_MAX];
	br_x509_trust_anchor *anchors; /* owned, and what they point to */
	size_t len;
	br_x509_minimal_context *contexts[CONTEXTS_MAX]; /* owned; made when first needed */
	size_t next;
	struct tls *more;
};

/* --- decoding --- */

static void *copy(const void *p, size_t n)
{
	void *c = malloc(n ? n : 1);

	if (c && n)
		memcpy(c, p, n);
	return c;
}

static void anchor_done(br_x509_trust_anchor *a)
{
	free(a->dn.data);
	if (a->pkey.key_type == BR_KEYTYPE_RSA) {
		free(a->pkey.key.rsa.n);
		free(a->pkey.key.rsa.e);
	} else if (a->pkey.key_type == BR_KEYTYPE_EC) {
		free(a->pkey.key.ec.q);
	}
	*a = (br_x509_trust_anchor){ .flags = 0 };
}

/* Copies of what belongs to the decoder. */
static int copy_key(const br_x509_pkey *from, br_x509_pkey *to)
{
	if (from->key_type == BR_KEYTYPE_RSA) {
		to->key.rsa.nlen = from->key.rsa.nlen;
		to->key.rsa.elen = from->key.rsa.elen;
		to->key.rsa.n = copy(from->key.rsa.n, from->key.rsa.nlen);
		to->key.rsa.e = copy(from->key.rsa.e, from->key.rsa.elen);
		to->key_type = from->key_type;
		return to->key.rsa.n && to->key.rsa.e ? 0 : -ENOMEM;
	}
	if (from->key_type != BR_KEYTYPE_EC)
		return -EINVAL;
	to->key.ec.curve = from->key.ec.curve;
	to->key.ec.qlen = from->key.ec.qlen;
	to->key.ec.q = copy(from->key.ec.q, from->key.ec.qlen);
	to->key_type = from->key_type;
	return to->key.ec.q ? 0 : -ENOMEM;
}

static void on_name(void *arg, const void *p, size_t n)
{
	ignore_result(buf_add(arg, p, n)); /* too long: the name matches no chain */
}

/* One certificate (DER). 0, -EINVAL for one that cannot be used, -ENOMEM. */
static int add_anchor(struct tls *t, const unsigned char *der, size_t n)
{
	br_x509_decoder_context d;
	br_x509_trust_anchor a = { .flags = 0 };
	const br_x509_pkey *key;
	AUTO_BUF name;
	int r;

	buf_init(&name, 64U << 10);
	br_x509_decoder_init(&d, on_name, &name);
	br_x509_decoder_push(&d, der, n);
	key = br_x509_decoder_get_pkey(&d);
	if (!key)
		return -EINVAL;
	a.dn.data = copy(name.p, name.len);
	a.dn.len = name.len;
	a.flags = br_x509_decoder_isCA(&d) ? BR_X509_TA_CA : 0;
	r = a.dn.data ? copy_key(key, &a.pkey) : -ENOMEM;
	if (r < 0) {
		anchor_done(&a);
		return r;
	}
	t->anchors[t->len++] = a;
	return 0;
}

/* The base64 text of one certificate, up to END. Those that BearSSL cannot read (a key of another kind) are left out. */
static int add_pem(struct tls *t, const char *p, const char *end, struct buf *der)
{
	size_t n = 0;
	int r;

	buf_clear(der);
	r = buf_reserve(der, (size_t)(end - p) / 4 * 3 + 3);
	if (r < 0)
		return r;
	if (b64_decode(p, (size_t)(end - p), der->p, &n) < 0)
		return 0;
	r = add_anchor(t, (const unsigned char *)der->p, n);
	return r == -EINVAL ? 0 : r;
}

static int add_bundle(struct tls *t, const char *text)
{
	AUTO_BUF der;
	size_t room = 0;
	int r = 0;

	buf_init(&der, BUNDLE_MAX);
	for (const char *p = text; (p = strstr(p, BEGIN_CERT)); p++)
		room++;
	if (room > ANCHORS_MAX)
		return -E2BIG;
	t->anchors = calloc(room ? room : 1, sizeof(t->anchors[0]));
	if (!t->anchors)
		return -ENOMEM;
	for (const char *p = text; r == 0 && (p = strstr(p, BEGIN_CERT));) {
		const char *end = strstr(p, END_DASHES);

		p += strlen(BEGIN_CERT);
		if (!end)
			break;
		r = add_pem(t, p, end, &der);
	}
	return r;
}

static void tls_free(struct tls *t)
{
	for (size_t i = 0; i < t->len; i++)
		anchor_done(&t->anchors[i]);
	free(t->anchors);
	free(t);
}

static int load(const char *file, struct tls **ret, struct err *e)
{
	struct tls *t = calloc(1, sizeof(*t));
	AUTO_BUF text;
	int r;

	buf_init(&text, BUNDLE_MAX);
	if (!t || str_format(t->file, sizeof(t->file), "%s", file) < 0) {
		free(t);
		return err_set(e, ERR_INTERNAL, ENOMEM, "the certificates of %.200s", file);
	}
	r = fd_read_file(AT_FDCWD, file, &text);
	if (r < 0) {
		tls_free(t);
		return err_set(e, ERR_IO, -r, "cannot read the certificates in %.300s", file);
	}
	r = text.p && strlen(text.p) == text.len ? add_bundle(t, text.p) : 0;
	if (r < 0 || t->len == 0) {
		tls_free(t);
		return err_set(e, ERR_INVALID, r < 0 ? -r : 0,
			       "%.300s has no certificate that can be used", file);
	}
	*ret = t;
	return 0;
}

/* --- which --- */

static const char *system_bundle(void)
{
	static const char *const files[] = { "/etc/ssl/certs/ca-certificates.crt",
					     "/etc/pki/tls/certs/ca-bundle.crt",
					     "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	const char *file = getenv("SSL_CERT_FILE");

	if (file && *file)
		return file;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (access(files[i], R_OK) == 0)
			return files[i];
	return files[0];
}

int tls_trust(const char *file, struct tls **ret, struct err *e)
{
	static struct tls *all;
	struct tls *t;
	int r;

	if (!file)
		file = system_bundle();
	for (t = all; t && strcmp(t->file, file) != 0;)
		t = t->more;
	if (!t) {
		r = load(file, &t, e);
		if (r < 0)
			return r;
		t->more = all;
		all = t;
	}
	*ret = t;
	return 0;
}

size_t tls_anchors(const struct tls *t)
{
	return t->len;
}

const char *tls_file(const struct tls *t)
{
	return t->file;
}

/* --- each connection --- */

static CURLcode on_context(CURL *easy, void *ctx, void *arg)
{
	br_ssl_client_context *c = ctx;
	struct tls *t = arg;
	br_x509_minimal_context **x = &t->contexts[t->next++ % CONTEXTS_MAX];
	unsigned char seed[SEED_LEN];

	(void)easy;
	if (!*x)
		*x = malloc(sizeof(**x));
	if (!*x || getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return CURLE_OUT_OF_MEMORY;
	br_x509_minimal_init_full(*x, t->anchors, t->len);
	br_ssl_engine_set_x509(&c->eng, &(*x)->vtable);
	br_ssl_engine_inject_entropy(&c->eng, seed, sizeof(seed));
	br_ssl_engine_add_flags(&c->eng, BR_OPT_NO_RENEGOTIATION);
	return CURLE_OK;
}

int tls_use(struct tls *t, CURL *easy)
{
	if (curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) != CURLE_OK ||
	    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) != CURLE_OK ||
	    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) != CURLE_OK ||
	    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context) != CURLE_OK ||
	    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, t) != CURLE_OK)
		return -ENOMEM;
	return 0;
}
