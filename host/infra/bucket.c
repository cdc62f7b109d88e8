/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/aws/artefact.h"
#include "host/aws/s3.h"
#include "host/aws/sigv4.h"
#include "host/infra/stack.h"
#include "lib/str.h"

/*
 * The settings of a bucket of ours: private, encrypted, TLS only, artefacts and unfinished uploads expire. The hash of all of them is
 * recorded when they are set, so that a change of them, or an end in the middle, sets them again.
 */

#define NS	     "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""
#define SETTINGS     5
#define SETTINGS_MAX 4096

static const char private[] =
	"<PublicAccessBlockConfiguration " NS "><BlockPublicAcls>true</BlockPublicAcls>"
	"<IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy>"
	"<RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>";
static const char encrypted[] =
	"<ServerSideEncryptionConfiguration " NS "><Rule><ApplyServerSideEncryptionByDefault>"
	"<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault>"
	"<BucketKeyEnabled>true</BucketKeyEnabled></Rule></ServerSideEncryptionConfiguration>";
static const char owned[] = "<OwnershipControls " NS "><Rule><ObjectOwnership>BucketOwnerEnforced"
			    "</ObjectOwnership></Rule></OwnershipControls>";

static int lifecycle(unsigned days, struct buf *out)
{
	int r = buf_adds(out, "<LifecycleConfiguration " NS ">"
			      "<Rule><ID>unfinished-uploads</ID><Filter><Prefix></Prefix></Filter>"
			      "<Status>Enabled</Status><AbortIncompleteMultipartUpload>"
			      "<DaysAfterInitiation>1</DaysAfterInitiation>"
			      "</AbortIncompleteMultipartUpload></Rule>");

	if (r == 0 && days)
		r = buf_addf(
			out,
			"<Rule><ID>old-artefacts</ID><Filter><Prefix>" ARTEFACT_PREFIX "</Prefix>"
			"</Filter><Status>Enabled</Status><Expiration><Days>%u</Days></Expiration>"
			"<NoncurrentVersionExpiration><NoncurrentDays>%u</NoncurrentDays>"
			"</NoncurrentVersionExpiration></Rule>",
			days, days);
	return r < 0 ? r : buf_adds(out, "</LifecycleConfiguration>");
}

struct settings {
	const char *what[SETTINGS], *text[SETTINGS];
	struct buf lifecycle, policy;
};

static int make_settings(const struct stack *s, struct settings *t)
{
	static const char *const what[SETTINGS] = { "publicAccessBlock", "ownershipControls",
						    "encryption", "policy", "lifecycle" };
	int r;

	buf_init(&t->lifecycle, SETTINGS_MAX);
	buf_init(&t->policy, SETTINGS_MAX);
	r = lifecycle(s->c->expire_days, &t->lifecycle);
	if (r == 0)
		r = policy_bucket(&s->place, s->bucket, &t->policy);
	memcpy(t->what, what, sizeof(what));
	t->text[0] = private;
	t->text[1] = owned;
	t->text[2] = encrypted;
	t->text[3] = t->policy.p;
	t->text[4] = t->lifecycle.p;
	return r;
}

int stack_bucket_settings(const struct stack *s, char ret[STACK_SHA_LEN + 1])
{
	struct settings t;
	AUTO_BUF all;
	int r = make_settings(s, &t);

	buf_init(&all, (size_t)SETTINGS * SETTINGS_MAX);
	for (size_t i = 0; r == 0 && i < SETTINGS; i++)
		r = buf_adds(&all, t.text[i]);
	if (r == 0)
		sigv4_hash(all.p, all.len, ret);
	buf_done(&t.lifecycle);
	buf_done(&t.policy);
	return r;
}

int stack_bucket_settle(struct stack *s, struct err *e)
{
	struct settings t;
	char sha[STACK_SHA_LEN + 1];
	int r = make_settings(s, &t);

	if (r < 0)
		r = err_set(e, ERR_INTERNAL, -r, "the bucket's settings");
	for (size_t i = 0; r == 0 && i < SETTINGS; i++)
		r = s3_configure(s->a, s->bucket, s->me.account, t.what[i], t.text[i], e);
	buf_done(&t.lifecycle);
	buf_done(&t.policy);
	if (r < 0)
		return r;
	if (stack_bucket_settings(s, sha) < 0 || stack_attr(s, RES_BUCKET, "settings", sha) < 0)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the bucket's settings");
	return 0;
}
