/* SPDX-License-Identifier: Apache-2.0 */
#include "seed.h"

#include <bearssl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"

/*
 * The kernel's generator alone is not enough to make a difference (it is what was cloned), but it
 * is good against somebody who knows the clock and the payload; the others are the reverse. A
 * source that is missing costs nothing: the mix is at least as good as the best of them.
 *
 * On x86-64, BearSSL's seeder is RDRAND where the CPU has it, else the system's again. RNDR of
 * ARMv8.5 it does not know.
 */

#define GIVE_MAX 64

void seed_mix(const struct seed_part *parts, size_t count, void *out, size_t n)
{
	static const char label[] = "agent-sandbox-os generation";
	unsigned char all[br_sha256_SIZE];
	br_hmac_drbg_context d;
	br_sha256_context h;

	/* Hashed together first: an update of the generator for each part costs a clone's start more than all else here. */
	br_sha256_init(&h);
	br_sha256_update(&h, label, sizeof(label));
	for (size_t i = 0; i < count; i++) {
		uint64_t len = parts[i].n;

		br_sha256_update(&h, &len, sizeof(len));
		br_sha256_update(&h, parts[i].p, parts[i].n);
	}
	br_sha256_out(&h, all);
	br_hmac_drbg_init(&d, &br_sha256_vtable, all, sizeof(all));
	br_hmac_drbg_generate(&d, out, n);
	memset(all, 0, sizeof(all));
}

/* 32 bytes of the CPU's own generator where there is one; else what is in OUT stays. */
static void from_cpu(unsigned char out[32])
{
#if defined(__aarch64__)
	/* RNDR (Arm ARM, D17.2.118) sets the Z flag when it has none. */
	if (!(getauxval(AT_HWCAP2) & (1UL << 16))) /* HWCAP2_RNG */
		return;
	for (int i = 0; i < 4; i++) {
		uint64_t v = 0;
		uint32_t good = 0;

		__asm__ volatile("mrs %0, s3_3_c2_c4_0\n\tcset %w1, ne"
				 : "=r"(v), "=r"(good)
				 :
				 : "cc");
		if (good)
			memcpy(out + 8 * i, &v, sizeof(v));
	}
#else
	br_prng_seeder seeder = br_prng_seeder_system(NULL);
	br_hmac_drbg_context d;

	br_hmac_drbg_init(&d, &br_sha256_vtable, NULL, 0);
	if (seeder && seeder(&d.vtable))
		br_hmac_drbg_generate(&d, out, 32);
#endif
}

void seed_draw(const void *host, size_t host_len, void *out, size_t n)
{
	unsigned char kernel[32] = { 0 }, cpu[32] = { 0 };
	struct timespec t[3] = { { 0 } };
	struct seed_part parts[] = { { kernel, sizeof(kernel) },
				     { cpu, sizeof(cpu) },
				     { host, host_len },
				     { t, sizeof(t) } };

	if (getrandom(kernel, sizeof(kernel), GRND_NONBLOCK) < 0) {
		/* not seeded yet, in the first moments of a boot without any source: the others
		 * must do */
	}
	from_cpu(cpu);
	(void)clock_gettime(CLOCK_REALTIME, &t[0]);
	(void)clock_gettime(CLOCK_MONOTONIC_RAW, &t[1]);
	(void)clock_gettime(CLOCK_BOOTTIME, &t[2]);
	seed_mix(parts, ARRAY_LEN(parts), out, n);
}

int seed_kernel(const void *p, size_t n, bool *ret_reseeded)
{
	struct {
		int bits, bytes; /* struct rand_pool_info ends in an array without a length */
		unsigned char b[GIVE_MAX];
	} give = { 0 };
	AUTO_FD fd = open("/dev/urandom", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	int r;

	if (n > GIVE_MAX)
		return -EINVAL;
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, p, n);
	if (r < 0)
		return r;
	give.bits = (int)n * 8;
	give.bytes = (int)n;
	memcpy(give.b, p, n);
	*ret_reseeded = ioctl(fd, RNDADDENTROPY, &give) == 0 && ioctl(fd, RNDRESEEDCRNG) == 0;
	return 0;
}
