/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BENCH_UNTIL_H
#define ASB_BENCH_UNTIL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Starts ARGV and reads its standard output, whose end is in TEXT (SIZE bytes, 0-terminated), until it has ended. ns
 * until WANT was in it (NULL: the first byte), or -1, also when it failed. *RET_END (may be NULL): ns until it had ended. ERR_PATH: where
 * stderr goes.
 */
int64_t bench_until(const char *const *argv, const char *want, const char *err_path, char *text,
		    size_t size, int64_t *ret_end);

#endif
