/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_TSC_H
#define ASB_LOCAL_TSC_H

#include <stdint.h>

/* How fast the time stamp counter runs, in kHz, measured for about 10 ms; 0 where there is none. */
uint32_t tsc_khz(void);

#endif
