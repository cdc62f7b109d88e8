/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/aws.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/aws/fetch.h"
#include "lib/str.h"

int64_t aws_now_s(void)
{
	return (int64_t)time(NULL);
}

int aws_open(const char *region, struct aws **ret, struct err *e)
{
	struct aws *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_set(e, ERR_INTERNAL, ENOMEM, "preparing to talk to AWS");
	r = settings_load(&a->set, region, e);
	if (r < 0) {
		free(a);
		return r;
	}
	r = fetch_open(settings_ca_bundle(&a->set), &a->fetch, e);
	if (r < 0) {
		aws_close(a);
		return r;
	}
	*ret = a;
	return 0;
}

void aws_close(struct aws *a)
{
	if (!a)
		return;
	fetch_free(a->fetch);
	aws_creds_done(&a->creds);
	settings_done(&a->set);
	free(a);
}

int aws_session(const char *region, struct aws **ret, struct err *e)
{
	static struct {
		char region[AWS_REGION_MAX + 1];
		struct aws *aws;
	} by_region[32];
	static pid_t owner;
	size_t i = 0;
	int r;

	/* A connection belongs to the process that made it: after a fork two would write to one. The child begins anew. */
	if (owner != getpid())
		memset(by_region, 0, sizeof(by_region));
	owner = getpid();
	for (; i < ARRAY_LEN(by_region) && by_region[i].aws; i++)
		if (strcmp(by_region[i].region, region ? region : "") == 0) {
			*ret = by_region[i].aws;
			return 0;
		}
	if (i == ARRAY_LEN(by_region) ||
	    str_format(by_region[i].region, sizeof(by_region[i].region), "%s",
		       region ? region : "") < 0)
		return err_set(e, ERR_INVALID, 0, "too many regions at once");
	r = aws_open(region, &by_region[i].aws, e);
	if (r < 0)
		return r;
	*ret = by_region[i].aws;
	return 0;
}

int aws_region(struct aws *a, const char **ret, struct err *e)
{
	char region[AWS_REGION_MAX + 1];
	int r = 0;

	if (!a->set.region[0] && creds_imds_region(a, region, sizeof(region)) == 1)
		r = settings_set_region(&a->set, region, "instance metadata", e);
	if (r < 0)
		return r;
	if (!a->set.region[0])
		return err_set(
			e, ERR_INVALID, 0,
			"no AWS region is set: --region, AWS_REGION or the profile's region");
	*ret = a->set.region;
	return 0;
}
