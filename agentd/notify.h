/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_NOTIFY_H
#define AGENTD_NOTIFY_H

/* Tells whoever started us that we listen: one byte to the descriptor of ASB_NOTIFY_FD, which is
 * closed then. */
void notify_ready(void);

#endif
