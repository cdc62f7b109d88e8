/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_KILL_TREE_H
#define INIT_KILL_TREE_H

/*
 * Signals what is left in a container. As PID 1: every process. Else: our children, which are where
 * every descendant ends up when its parents have died (we are their subreaper); so SIGKILL is to be
 * repeated until none is left.
 */
void kill_tree(int sig);

#endif
