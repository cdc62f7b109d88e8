#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The aarch64 programs under qemu-user: that they start, run commands and move files. What qemu-user lacks (subreaper,
pidfd at birth, shared memory of vfork) makes agentd take its fallbacks, so those are tested here too."""
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ["ASB_BIN_DIR"] = os.path.join(TOP, "build", "aarch64", "bin")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _agentd import Agentd, done, equal, ok  # noqa: E402  (it reads ASB_BIN_DIR)

QEMU = shutil.which("qemu-aarch64-static")
if not QEMU or not os.path.exists(BIN + "/agentd"):
    print("1..0 # SKIP no qemu-aarch64-static or no aarch64 build")
    sys.exit(0)

for program in ("asb-init", "agentd", "asb-hooks", "asb-portd", "asb"):
    r = subprocess.run([QEMU, f"{BIN}/{program}", "--version"], capture_output=True, timeout=60)
    ok(r.returncode == 0 and r.stdout.startswith(program.encode() + b" "), f"{program} --version", r)

agent = Agentd(prefix=(QEMU,), stderr=subprocess.DEVNULL)
equal(agent.json("GET", "/healthz")[1]["status"], "ok", "agentd answers")
status, body = agent.sh("printf 'a\\n\\nb'; exit 7")
equal((status, body["exit_code"], body["stdout"]), (200, 7, b"a\n\nb"), "bytes and exit code of a command")
status, body = agent.exec("nonesuch")
equal((status, body["detail"]), (400, "command not found: nonesuch"), "a missing command is told, not invented")
status, body = agent.sh("kill -9 $$")
equal((status, body["signal"], body["exit_code"]), (200, 9, -9), "death by a signal")
status, body = agent.sh("echo begun; sleep 100 & wait", timeout=1)
equal((status, body["timed_out"], body["stdout"]), (504, True, b"begun\n"), "a timeout gives the output so far")
path = os.path.join(agent.dir, "file")
equal(agent.json("POST", "/v1/fs/write", {"path": path, "content": "aGkK"})[1], {"bytes_written": 3}, "a file is written")
equal(agent.json("POST", "/v1/fs/read", {"path": path})[1], {"content": "aGkK", "encoding": "base64"}, "and read")
equal(agent.stop(), 0, "agentd ends when told to")

r = subprocess.run([QEMU, f"{BIN}/asb-init", "--", "sh", "-c", "exit 7"], capture_output=True, timeout=60,
                   env={**os.environ, "AGENTD_PORT": "0", "AGENTD_HOOK_PORT": "0"})
equal(r.returncode, 7, "asb-init ends with its command's code")
done()
