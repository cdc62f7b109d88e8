#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 200
"""Confinement on the guest's own kernel, in its base image: the profile without a wish, what works under it, the counts."""
import json

from _asb import *

SCRIPT = r"""
import ctypes, json, os, subprocess, threading, urllib.request

def get(path):
    return json.load(urllib.request.urlopen("http://127.0.0.1:8080" + path))

def call(number, *args):
    r = libc.syscall(number, *map(ctypes.c_long, args))
    return ctypes.get_errno() if r == -1 else 0

libc = ctypes.CDLL(None, use_errno=True)
machine = os.uname().machine
acct, keyctl, bpf = {"x86_64": (163, 250, 321), "aarch64": (89, 219, 280)}[machine]
status = dict(l.split(":\t") for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
out = {"filter": status["Seccomp"], "nnp": status["NoNewPrivs"], "info": get("/v1/info")["seccomp"]}
out["acct"], out["keyctl"] = call(acct, 1), call(keyctl, -1)
out["denials"] = get("/v1/metrics")["seccomp_denials"]
n = []
threads = [threading.Thread(target=n.append, args=(i,)) for i in range(20)]
[t.start() for t in threads], [t.join() for t in threads]
out["threads"] = len(n)
out["git"] = subprocess.run("cd /tmp && git init -q r && git clone -q r s", shell=True, stderr=subprocess.DEVNULL).returncode
out["namespaces"] = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--uts", "sh", "-c",
                                    "mount -t tmpfs none /mnt && echo $$"], capture_output=True, text=True).stdout
pid = os.fork()
if pid == 0:
    os.setuid(65534)
    os._exit(call(bpf, 0, 0, 0) & 255)
out["bpf of another user"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps(out))
"""

need_vm()
with Home() as home:
    r = home.call("run", "--", "python3", "-c", SCRIPT, limit=150)
try:
    got = json.loads(r.stdout)
except ValueError:
    got = {"stdout": r.stdout, "stderr": r.stderr}
same(got.get("info"), {"default": True, "restricted": True, "counted": True}, "the guest's kernel can do all of it")
same((got.get("filter"), got.get("nnp")), ("2", "0"), "a command has a filter, and no no_new_privs")
same((got.get("acct"), got.get("keyctl")), (1, 38), "denied calls are EPERM, keyrings ENOSYS")
same(got.get("denials"), [{"profile": "default", "call": "acct", "count": 1},
                           {"profile": "default", "call": "keyctl", "count": 1}], "and counted")
same((got.get("threads"), got.get("git"), got.get("namespaces")), (20, 0, "1\n"), "threads, git and namespaces work")
same(got.get("bpf of another user"), 1, "bpf is EPERM for who is not root")
done()
