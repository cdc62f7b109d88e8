/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_COMPILER_H
#define ASB_COMPILER_H

/*
 * The five GNU attributes that the project uses, and nothing else of the dialect. They are the whole
 * difference from ISO C17.
 */
#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define MUST_CHECK   __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))
#define NORETURN     __attribute__((noreturn))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* For a result that truly does not matter; the place says why. A cast to void does not silence MUST_CHECK. */
static inline void ignore_result(int r)
{
	(void)r;
}

/* The structure of type T whose member M is at P. */
#define CONTAINER_OF(p, T, m) ((T *)(void *)((char *)(p)-offsetof(T, m)))

#endif
