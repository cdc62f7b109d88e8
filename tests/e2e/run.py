#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 1200
"""`asb run` in real VMs: bytes, exit statuses, stdin, timeouts, interruption, and that nothing stays behind."""
import base64
import hashlib
import json
import os
import signal
import subprocess
import time

from _asb import ASB, Home, done, need_vm, ok, one_line, same

need_vm()


def result(r):
    return r.returncode, r.stdout


def statuses(h):
    same(result(h.call("run", "--", "sh", "-c", 'printf "a\\n\\nb"; exit 7')), (7, b"a\n\nb"), "bytes and status")
    same(result(h.call("run", "--", "sh", "-c", "kill -9 $$")), (137, b""), "a signal is 128+n")
    r = h.call("run", "--", "nonesuch")
    ok(r.returncode == 127 and b"nonesuch" in r.stderr and len(one_line(r.stderr)) == 1, "no such command: 127, named", r)
    r = h.call("run", "--", "/etc/passwd")
    ok(r.returncode == 126 and r.stdout == b"", "not executable: 126", r)
    r = h.call("run", "-w", "/nonexistent", "--", "true")
    ok(r.returncode == 125 and b"/nonexistent" in r.stderr, "a missing working directory: 125, named", r)
    r = h.call("run", "base", "sh", "-c", "echo out; echo err >&2; exit 125")
    same((r.returncode, r.stdout, r.stderr), (125, b"out\n", b"err\n"), "a command's own 125, both streams")
    r = h.call("run", "--image-that-is-not", "--", "true")
    same(r.returncode, 2, "an unknown option")
    r = h.call("run", "nosuchimage", "true")
    ok(r.returncode == 125 and b"nosuchimage" in r.stderr, "an image that is not there: 125, named", r)


def documents(h):
    doc = json.loads(h.call("run", "--json", "--", "sh", "-c", "echo hi; echo no >&2; exit 125").stdout)
    same([doc[k] for k in ("source", "exit_code", "stdout", "stderr", "encoding", "error")],
         ["guest", 125, "hi\n", "no\n", "utf-8", None], "the document of a command that says 125")
    doc = json.loads(h.call("run", "--json", "--", "printf", "\\000\\377").stdout)
    same((doc["encoding"], base64.b64decode(doc["stdout"])), ("base64", b"\0\xff"), "bytes that are no text")
    r = h.call("run", "--json", "--", "nonesuch")
    doc = json.loads(r.stdout)
    same((r.returncode, doc["source"], doc["exit_code"], doc["error"]["code"]), (127, "asb", 127, "not_found"),
         "the document of a command that is not there")


def environment(h):
    r = h.call("run", "-e", "A=1 2", "-e", "FROM_ME", "-e", "NOT_SET", "--", "sh", "-c", 'echo "$A|$FROM_ME|${NOT_SET-unset}"',
               env={"FROM_ME": "x"})
    same(result(r), (0, b"1 2|x|unset\n"), "variables")
    same(result(h.call("run", "-w", "/usr", "--", "pwd")), (0, b"/usr\n"), "a working directory")
    r = h.call("run", "--", "python3", "-c", "import sys; print(sys.argv[1:])", "a b", "", "$HOME", "'")
    same(result(r), (0, b"['a b', '', '$HOME', \"'\"]\n"), "arguments are not a shell's")


def stdin(h):
    start = time.monotonic()
    p = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE)
    r = h.call("run", "--", "echo", "hi", stdin=p.stdout)
    p.kill()
    p.wait()
    same(result(r), (0, b"hi\n"), "idle stdin")
    ok(time.monotonic() - start < LIMIT_IDLE, "does not delay the end")
    data = os.urandom(10 << 20)
    path = os.path.join(h.top, "data")
    with open(path, "wb") as f:
        f.write(data)
    with open(path, "rb") as f:
        r = h.call("run", "--", "cat", stdin=f)
    ok(r.returncode == 0 and hashlib.sha256(r.stdout).digest() == hashlib.sha256(data).digest(),
       "10 MB of a file through cat are byte-exact", r.returncode, len(r.stdout), r.stderr)
    r = h.call("run", "--", "wc", "-c", input=data)
    same(r.stdout.strip(), str(len(data)).encode(), "10 MB of a pipe arrive whole")
    same(result(h.call("run", "--", "head", "-c", "3", input=data)), (0, data[:3]), "a command that reads only the begin")
    same(result(h.call("run", "--no-stdin", "--", "cat", input=b"x")), (0, b""), "--no-stdin")


LIMIT_IDLE = 100


def timeouts(h):
    start = time.monotonic()
    r = h.call("run", "--timeout", "2", "--", "sh", "-c", "echo begin; sleep 100 & wait")
    same((r.returncode, r.stdout), (124, b"begin\n"), "a timeout is 124, with the output so far")
    ok(b"timeout" in r.stderr and time.monotonic() - start < 90, "and is told", r.stderr)


def interruption(h):
    for delay, what in ((0.3, "during the boot"), (None, "during a command")):
        for sig in (signal.SIGINT, signal.SIGTERM):
            p = h.start("run", "--", "sh", "-c", "echo ready; sleep 300")
            if delay:
                time.sleep(delay)
            else:
                p.stdout.readline()
            p.send_signal(sig)
            try:
                status = p.wait(60)
            except subprocess.TimeoutExpired:
                p.kill()
                status = "hangs"
            ok(status in (-sig, 128 + sig), f"{sig.name} {what} ends asb", status, p.stderr.read())
            p.stdout.close()
            p.stderr.close()
            settled(h, f"{sig.name} {what} leaves nothing")
    p = h.start("run", "--", "sh", "-c", "trap 'echo bye; exit 9' INT; echo ready; while :; do sleep 0.1; done")
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    same((p.returncode, out), (9, b"bye\n"), "a command that handles SIGINT ends in its own way")
    p = h.start("run", "--", "sh", "-c", "echo ready; sleep 300")
    p.stdout.readline()
    p.kill()
    p.communicate()
    settled(h, "SIGKILL of asb leaves nothing")
    p = subprocess.run(["bash", "-c", f"'{ASB}' run -- yes | head -n 1; echo ${{PIPESTATUS[0]}}"], env=h.env,
                       capture_output=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    same((p.stdout, p.stderr), (b"y\n141\n", b""), "a reader that goes away ends it, quietly")
    settled(h, "and nothing is left")


def settled(h, name):
    """A supervisor may need a moment after its owner was killed."""
    until = time.monotonic() + 30
    while h.left() and time.monotonic() < until:
        time.sleep(0.2)
    same(h.left(), [], name)


def many(h):
    two = [h.start("run", "--", "sh", "-c", f"echo {i}; sleep 1; exit {i}") for i in (3, 4)]
    got = [(p.communicate(timeout=120)[0], p.returncode) for p in two]
    same(got, [(b"3\n", 3), (b"4\n", 4)], "two at once do not disturb each other")
    before = sorted(os.listdir(os.path.join(h.path, ".agent_sandbox")))
    bad = [i for i in range(20) if h.call("run", "--", "true").returncode]
    same(bad, [], "20 sandboxes one after another")
    same(h.left(), [], "leave no sandbox")
    same(sorted(os.listdir(os.path.join(h.path, ".agent_sandbox"))), before, "and the folder as it was")


with Home() as home:
    statuses(home)
    documents(home)
    environment(home)
    stdin(home)
    timeouts(home)
    interruption(home)
    many(home)
done()
