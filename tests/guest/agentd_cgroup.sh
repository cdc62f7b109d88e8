#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 1500
# The exec tests once more with cgroup2 in its place.
exec "$(dirname "$0")/_with-cgroup" agentd_exec.py
