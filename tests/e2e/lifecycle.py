#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""A named sandbox through its life: create, exec, stop, start, restart, logs, inspect, rm."""
import json
import os
import subprocess
import time

from _asb import Home, done, need_vm, ok, one_line, same

need_vm()


def ps(h):
    return json.loads(h.call("ps", "app", "--json").stdout)["state"]


def exec_(h, *words, **kw):
    return h.call("exec", "app", *words, **kw)


def create(h):
    r = h.call("create", "app", "-e", "GREETING=hello", "-m", "256")
    ok(r.returncode == 0 and r.stdout.startswith(b"created app (local-"), "create", r.stdout, r.stderr)
    ok(b"local backend" in r.stderr, "it says on which backend", r.stderr)
    r = h.call("create", "app")
    ok(r.returncode == 1 and b"already" in r.stderr and len(one_line(r.stderr)) == 1, "a second one is refused", r.stderr)
    doc = json.loads(h.call("ls", "--json").stdout)["sandboxes"]
    same([(x["name"], x["state"], x["image"], x["memory_mib"]) for x in doc], [("app", "RUNNING", "base:1", 256)], "ls")
    lines = h.call("ls").stdout.decode().splitlines()
    same(lines[0].split(), ["NAME", "ID", "STATE", "IMAGE", "BACKEND", "CREATED"], "the table's head")
    same(lines[1].split()[0], "app", "the table's row")
    ok(h.call("ps", "app").stdout.startswith(b"app: RUNNING (local-"), "ps")
    doc = json.loads(h.call("inspect", "app").stdout)
    ok(isinstance(doc, dict) and doc, "inspect is a JSON object")


def run_in(h):
    same(exec_(h, "sh", "-c", 'echo "$GREETING"; exit 3').stdout, b"hello\n", "the variables of create are there")
    same(exec_(h, "sh", "-c", "exit 3").returncode, 3, "its status")
    same(exec_(h, "-e", "GREETING=bye", "--", "sh", "-c", "echo $GREETING").stdout, b"bye\n", "-e of exec goes before them")
    same(exec_(h, "tee", "/root/kept", input=b"kept\n").stdout, b"kept\n", "stdin")
    r = exec_(h, "--timeout", "2", "--", "sh", "-c", "sleep 4242 & setsid sleep 4242 & wait")
    same(r.returncode, 124, "a timeout")
    r = exec_(h, "sh", "-c", "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p; echo; done 2>/dev/null | grep -c '^sleep 4242'")
    same(r.stdout, b"0\n", "leaves no process in the guest")
    start = time.monotonic()
    same(exec_(h, "sh", "-c", "sleep 4000 & echo done").stdout, b"done\n", "a background child holds nothing up")
    ok(time.monotonic() - start < 60, "for long")
    many = [h.start("exec", "app", "--", "sh", "-c", f"exit {i}") for i in range(1, 31)]
    same([p.wait(120) for p in many], list(range(1, 31)), "30 at once: each its own status")
    for p in many:
        p.stdout.close()
        p.stderr.close()
    r = exec_(h, "sh", "-c", "head -c 50000000 /dev/zero; echo end >&2")
    same((len(r.stdout), r.stderr), (50000000, b"end\n"), "50 MB of output")
    p = subprocess.Popen(["bash", "-c", f"'{os.path.abspath(__import__('_asb').ASB)}' exec app -- sh -c 'yes 4243' | head -n 1"],
                         env=h.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    same(p.communicate(timeout=60)[0], b"4243\n", "a reader that goes away")
    r = exec_(h, "sh", "-c", "sleep 1; grep -c 4243 /proc/[0-9]*/cmdline 2>/dev/null | grep -v self | grep -c ':1$'")
    ok(r.stdout.strip() in (b"0", b"1", b"2"), "looking for what is left", r.stdout)


def orphans(h):
    r = exec_(h, "sh", "-c", "i=0; while [ $i -lt 500 ]; do (sleep 0.01 &); i=$((i + 1)); done; sleep 1; "
                             "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
    same(r.stdout.strip(), b"0", "500 orphans leave no zombie")


def stop_start(h):
    same(h.call("stop", "app").stdout, b"suspended app\n", "stop")
    same(ps(h), "SUSPENDED", "its state")
    r = h.call("stop", "app")
    same((r.returncode, r.stdout), (0, b""), "stop again is fine")
    same((h.call("exec", "app", "true").returncode, ps(h)), (0, "RUNNING"), "exec in a stopped one resumes it")
    r = h.call("start", "app")
    same((r.returncode, r.stdout), (0, b""), "start again is fine")
    same(exec_(h, "cat", "/root/kept").stdout, b"kept\n", "it goes on where it was")
    same(h.call("restart", "app").stdout, b"restarted app\n", "restart")
    same(exec_(h, "cat", "/root/kept").stdout, b"kept\n", "the disk stays over a restart")
    same(exec_(h, "sh", "-c", "echo $GREETING").stdout, b"hello\n", "and so do the variables of create")
    r = h.call("logs", "app")
    ok(r.returncode == 0 and len(r.stdout) > 0, "logs", r.stdout[:200], r.stderr)


def ends(h):
    p = h.start("exec", "app", "--", "sh", "-c", "echo ready; sleep 300")
    p.stdout.readline()
    same(h.call("rm", "app").stdout, b"removed app\n", "rm of a running one")
    try:
        out, err = p.communicate(timeout=90)
        # 143: its power-off sent TERM to the command, and the agent still told so. 125: it did not.
        ok(p.returncode == 143 or (p.returncode == 125 and b"error: " in err),
           "an exec in it ends, and no status is invented", p.returncode, err)
    except subprocess.TimeoutExpired:
        p.kill()
        ok(False, "an exec in it ends, and no status is invented", "it hangs")
    same(h.left(), [], "nothing is left")
    r = h.call("rm", "app")
    same(r.returncode, 1, "rm of an unknown one")
    same(h.call("rm", "-f", "app").returncode, 0, "rm --force of an unknown one")
    h.call("create", "a1")
    h.call("create", "a2")
    same(h.call("rm", "a1", "nope", "a2").returncode, 1, "rm of several, one unknown")
    same(h.left(), [], "removes the others")


def lost_record(h):
    state = os.path.join(h.env["HOME"], ".agent_sandbox", "state.json")
    h.call("create", "lost", "-m", "256")
    box = json.loads(h.call("ps", "lost", "--json").stdout)["id"]
    same(h.call("exec", box, "echo", "hi").stdout, b"hi\n", "a sandbox can be named by its id")
    with open(state, "w") as f:
        f.write('{"sandboxes": {}}')
    doc = json.loads(h.call("ls", "--json").stdout)["sandboxes"]
    same([(x["name"], x["state"]) for x in doc], [(box, "RUNNING")], "a sandbox without a record is listed by its id")
    same(h.call("rm", box).returncode, 0, "and can be removed")
    same(h.left(), [], "nothing is left of it")


with Home(" with a space") as home:
    lost_record(home)
    create(home)
    run_in(home)
    orphans(home)
    stop_start(home)
    ends(home)
done()
