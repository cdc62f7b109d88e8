/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/retry.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SECOND	     1000000000LL
#define DELAY_MAX_S  20
#define AFTER_MORE_S 5

static const struct {
	const char *code;
	enum retry_what what;
} by_code[] = {
	{ "RequestTimeout", RETRY_AGAIN },
	{ "RequestTimeoutException", RETRY_AGAIN },
	{ "PriorRequestNotComplete", RETRY_AGAIN },
	{ "IDPCommunicationError", RETRY_AGAIN },
	{ "InternalServerException", RETRY_AGAIN },
	{ "Throttling", RETRY_THROTTLE },
	{ "ThrottlingException", RETRY_THROTTLE },
	{ "ThrottledException", RETRY_THROTTLE },
	{ "RequestThrottledException", RETRY_THROTTLE },
	{ "TooManyRequestsException", RETRY_THROTTLE },
	{ "ProvisionedThroughputExceededException", RETRY_THROTTLE },
	{ "TransactionInProgressException", RETRY_THROTTLE },
	{ "RequestLimitExceeded", RETRY_THROTTLE },
	{ "BandwidthLimitExceeded", RETRY_THROTTLE },
	{ "LimitExceededException", RETRY_THROTTLE },
	{ "RequestThrottled", RETRY_THROTTLE },
	{ "SlowDown", RETRY_THROTTLE },
	{ "EC2ThrottledException", RETRY_THROTTLE },
	{ "ExpiredToken", RETRY_CREDS },
	{ "ExpiredTokenException", RETRY_CREDS },
	{ "RequestTimeTooSkewed", RETRY_CLOCK },
	{ "RequestExpired", RETRY_CLOCK },
	{ "RequestInTheFuture", RETRY_CLOCK },
	{ "InvalidSignatureException", RETRY_CLOCK },
	{ "SignatureDoesNotMatch", RETRY_CLOCK },
	{ "AuthFailure", RETRY_CLOCK },
};

enum retry_what retry_decide(int status, const char *code, int errnum)
{
	if (status == 0)
		return errnum == ETIMEDOUT || errnum == ECONNREFUSED || errnum == ECONNRESET
			       ? RETRY_AGAIN
			       : RETRY_NOT;
	/* A quota is not a matter of seconds: who wants to wait for room does so by himself. */
	if (status == 402)
		return RETRY_NOT;
	for (size_t i = 0; i < sizeof(by_code) / sizeof(by_code[0]); i++)
		if (strcmp(by_code[i].code, code) == 0)
			return by_code[i].what;
	if (status == 429)
		return RETRY_THROTTLE;
	/* InsufficientCapacityException is a 500 as well, and another attempt may find room. */
	return status == 500 || status == 502 || status == 503 || status == 504 ? RETRY_AGAIN
										: RETRY_NOT;
}

int64_t retry_delay_ns(unsigned n, uint32_t random, int retry_after_s)
{
	int64_t most_s = n < 6 ? 1LL << (n - 1) : DELAY_MAX_S;
	int64_t ns = (int64_t)((uint64_t)(most_s * 1000) * random >> 32) * 1000000;
	int64_t after = retry_after_s * SECOND;

	if (after > ns + AFTER_MORE_S * SECOND)
		after = ns + AFTER_MORE_S * SECOND;
	return after > ns ? after : ns;
}
