/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/agent/frames.c */
/* The host's decoder of command output, fed in pieces: the guest is hostile. */
#include "fuzz/fuzz.h"
#include "host/agent/frames.h"

static size_t got;

static int on_data(void *arg, int stream, const void *p, size_t n)
{
	const unsigned char *u = p;

	(void)arg;
	if (stream != 1 && stream != 2)
		abort();
	for (size_t i = 0; i < n; i++)
		got += u[i];
	return 0;
}

static int on_event(void *arg, const char *json, size_t n)
{
	(void)arg;
	if (json[n] != '\0')
		abort();
	got += strlen(json);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct frames_ops ops = { on_data, on_event };
	size_t step = n ? p[0] + 1u : 1;
	struct frames f;

	frames_init(&f, &ops, NULL);
	for (size_t at = 1; at < n; at += step)
		if (frames_feed(&f, p + at, n - at < step ? n - at : step) < 0)
			break;
	frames_done(&f);
	return 0;
}
