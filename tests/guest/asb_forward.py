#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""How the ends of a stream arrive at who has connected to asb forward. A link.sock of ours stands for the supervisor; a whole
VM is in tests/e2e/forward.py."""
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _agentd import TOP, done, equal, ok  # noqa: E402

ASB = os.environ.get("ASB", os.path.join(TOP, "build/bin/asb"))
if not os.access(ASB, os.X_OK):
    print("1..0 # SKIP build/bin/asb is missing (make host)")
    sys.exit(0)

home = tempfile.mkdtemp()
vm = os.path.join(home, ".agent_sandbox/local/vms/local-0123456789abcdef")
os.makedirs(vm, mode=0o700)
with open(os.path.join(home, ".agent_sandbox/state.json"), "w") as f:
    json.dump({"sandboxes": {"app": {"name": "app", "microvm_id": os.path.basename(vm), "endpoint": None, "image_arn": "base",
                                     "region": None}}}, f)
with open(os.path.join(vm, "vm.json"), "w") as f:
    json.dump({"id": os.path.basename(vm), "name": "app", "image": "base"}, f)
with open(os.path.join(vm, "status.json"), "w") as f:
    json.dump({"state": "RUNNING"}, f)
LOCK = open(os.path.join(vm, "lock"), "w")
fcntl.flock(LOCK, fcntl.LOCK_EX)

os.chdir(vm)
LINK = socket.socket(socket.AF_UNIX)
LINK.bind("link.sock")
LINK.listen(8)
P = subprocess.Popen([ASB, "forward", "app", "0:80"], env={"PATH": os.environ["PATH"], "HOME": home}, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)
LINE = P.stdout.readline().decode()
PORT = int((re.match(r"forwarding 127\.0\.0\.1:(\d+) -> app:80 ", LINE) or [0, 0])[1])


def connection():
    """Both ends: the local client's, and the supervisor's with what came along."""
    mine = socket.create_connection(("127.0.0.1", PORT), timeout=60)
    LINK.settimeout(60)
    theirs, _ = LINK.accept()
    line, fds, _, _ = socket.recv_fds(theirs, 64, 4)
    equal((line, len(fds)), (b"CONNECT 80\n", 1), "asked for, with a socket")
    return mine, theirs, socket.socket(fileno=fds[0])


def rest(s):
    got = b""
    try:
        while p := s.recv(65536):
            got += p
        return got, "end"
    except ConnectionResetError:
        return got, "reset"


if ok(PORT > 0, "a port is picked", LINE):
    c, s, end = connection()
    s.sendall(b"OK\nwhole")
    end.sendall(b"\0")
    s.shutdown(socket.SHUT_WR)
    equal(rest(c), (b"whole", "end"), "an end that was told is one")
    c.sendall(b"more")
    equal(s.recv(9), b"more", "and the other direction goes on")
    s.close()
    c.close()

    c, s, end = connection()
    s.sendall(b"OK\nhalf")
    equal(c.recv(9), b"half", "half of something")
    s.close()
    end.close()
    equal(rest(c), (b"", "reset"), "a cut is none")
    c.close()

    c, s, end = connection()
    end.close()
    s.sendall(b"OK\nwhole")
    s.close()
    equal(rest(c), (b"whole", "end"), "an older supervisor tells nothing")
    c.close()

    c, s, end = connection()
    s.sendall(b"OK\nhalf")
    equal(c.recv(9), b"half", "half of something")
    P.send_signal(signal.SIGINT)
    equal(rest(c), (b"", "reset"), "Ctrl-C cuts, too")
    equal(P.wait(60), 0, "and is no failure")
P.kill()
P.communicate()
shutil.rmtree(home)
done()
