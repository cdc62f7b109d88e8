#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 400
"""tests/guest/agentd_limits.py inside a VM, where cgroup2 has all its controllers."""
import io
import tarfile

from _asb import *

need_vm()
tar = io.BytesIO()
with tarfile.open(fileobj=tar, mode="w") as t:
    for name in ("_agentd.py", "agentd_limits.py"):
        t.add(os.path.join(TOP, "tests/guest", name), name)
with Home() as home:
    r = home.call("run", "--memory", "1g", "--", "sh", "-c",
                  "mkdir /root/t && cd /root/t && tar x && AGENTD_TEST_PORT=8080 python3 agentd_limits.py", input=tar.getvalue(), limit=350)
sys.stdout.write(r.stdout.decode(errors="replace"))
if r.returncode or not r.stdout:
    sys.stderr.write(r.stderr.decode(errors="replace"))
sys.exit(r.returncode)
