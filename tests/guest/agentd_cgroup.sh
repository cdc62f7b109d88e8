#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 1500
# The exec tests once more with cgroup2 in its place, in a mount namespace of their own.
cd "$(dirname "$0")" || exit 1
probe='mount -t cgroup2 none /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/asb/work/probe && rmdir /sys/fs/cgroup/asb/work/probe'
if ! unshare --mount sh -c "$probe" 2>/dev/null; then
	echo "1..0 # SKIP cgroup2 cannot be mounted here"
	exit 0
fi
exec unshare --mount sh -c '
	mount -t cgroup2 none /sys/fs/cgroup
	AGENTD_TEST_CGROUP=1 '"${PYTHON:-python3}"' agentd_exec.py
	status=$?
	rmdir /sys/fs/cgroup/asb/work/x* /sys/fs/cgroup/asb/work /sys/fs/cgroup/asb 2>/dev/null
	exit $status'
