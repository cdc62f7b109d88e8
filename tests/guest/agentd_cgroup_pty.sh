#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 300
# The tests of agentd_pty.py once more with cgroup2 in its place.
exec "$(dirname "$0")/_with-cgroup" agentd_pty.py
