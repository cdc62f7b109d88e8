#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: sanitized
"""Sandboxes on AWS whose image has another agent, with the compatible routes only: what asb does with it, and what it says of the rest."""
import base64
import contextlib
import json
import os
import signal
import subprocess

import _mcp
from _aws import ASB, IMAGE, Cloud, done, ok, same, until
from _compat_guest import Guest
from _term import Term


def execs(guest):
    return guest.seen.count(("POST", "/v1/exec"))


def commands(c):
    r = c.call("exec", "app", "--no-stdin", "-e", "WHO=me", "-w", "/tmp", "--", "sh", "-c", "printf 'a\\000b'; pwd; echo $WHO >&2; exit 7")
    same((r.returncode, r.stdout, r.stderr), (7, b"a\0b/tmp\n", b"me\n"), "bytes, streams and status, the directory and a variable")
    same(c.agent.seen[-1], ("POST", "/v1/exec"), "by the compatible route")
    same(execs(c.agent), 1, "once")
    same(c.call("exec", "app", "--", "sh", "-c", "kill -9 $$").returncode, 137, "a signal")
    r = c.call("exec", "app", "--json", "--", "sh", "-c", "echo o; echo e >&2; exit 3")
    doc = json.loads(r.stdout)
    same((r.returncode, doc["stdout"], doc["stderr"], doc["exit_code"], doc["source"]), (3, "o\n", "e\n", 3, "guest"), "--json")
    r = c.call("exec", "app", "--timeout", "0.5", "sleep", "60")
    ok(r.returncode == 124 and b"timeout" in r.stderr, "a timeout", r.stderr)
    r = c.call("exec", "app", "/nonexistent")
    ok(r.returncode == 127 and b"command not found" in r.stderr, "127", r.stderr)
    r = c.call("exec", "app", "-w", "/no/folder", "true")
    ok(r.returncode == 127 and b"no directory /no/folder" in r.stderr, "or the directory is missing: that agent does not tell them apart", r.stderr)
    r = c.call("exec", "app", "/etc")
    ok(r.returncode == 125 and b"not executable" in r.stderr, "what its agent fails of", r.stderr)
    r = c.call("exec", "app", "--", "sh", "-c", "head -c 9000000 /dev/zero")
    same((r.returncode, r.stdout == bytes(9000000)), (0, True), "9 MB of output")
    r = c.call("run", IMAGE, "--", "sh", "-c", "echo out; exit 9")
    same((r.returncode, r.stdout, sorted(c.state())), (9, b"out\n", ["app", "unwell"]), "run")
    with subprocess.Popen([ASB, "exec", "app", "--", "sh", "-c", "head -c 3000000 /dev/zero"], env=c.home.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdout.read(1)
        p.stdout.close()
        same(p.wait(timeout=60), -signal.SIGPIPE, "a reader that is gone")


def stdin(c):
    before = execs(c.agent)
    r = c.call("exec", "app", "cat", input=b"x")
    ok(r.returncode == 125 and b"no standard input" in r.stderr and b"--no-stdin" in r.stderr and execs(c.agent) == before,
       "input is refused, and nothing is started", r.stderr)
    same(c.call("exec", "app", "--no-stdin", "cat", input=b"x").returncode, 0, "--no-stdin")
    path = os.path.join(c.home.top, "empty")
    open(path, "w").close()
    with open(path, "rb") as f:
        same(c.call("exec", "app", "cat", stdin=f).returncode, 0, "a file that is empty")
    rd, wr = os.pipe()
    os.close(wr)
    same(c.call("exec", "app", "cat", stdin=rd).returncode, 0, "a pipe that is closed")
    os.close(rd)


def refused(c):
    before = execs(c.agent)
    for words, why in ((["exec", "app", "-d", "true"], "leaves no command running"), (["exec", "app", "-t", "true"], "has no terminals"),
                       (["exec", "app", "-u", "nobody", "true"], "as itself only"), (["exec", "app", "--pids", "9", "true"], "has no limits"),
                       (["exec", "app", "--seccomp", "none", "true"], "as itself only"), (["exec", "app", "--attach", "ab"], "compatible routes only"),
                       (["execs", "app"], "compatible routes only"), (["kill", "app", "ab"], "compatible routes only"),
                       (["metrics", "app"], "compatible routes only"), (["wait", "app", "ab"], "compatible routes only"),
                       (["logs", "app", "ab"], "compatible routes only")):
        r = c.call(*words)
        ok(r.returncode in (1, 125) and why.encode() in r.stderr and b"asb image init makes the folder of one" in r.stderr, " ".join(words), r.stderr)
    doc = json.loads(c.call("execs", "app", "--json").stdout)
    same(doc["error"]["code"], "unsupported", "--json")
    t = Term([ASB, "shell", "app"], c.home.env)
    t.end()
    ok(b"has no terminals" in t.seen and t.status == 125, "shell", t.seen)
    same(execs(c.agent), before, "nothing was started")
    t = Term([ASB, "exec", "app", "--", "sh", "-c", "tty; echo said"], c.home.env)
    t.end()
    ok(b"not a tty\r\nsaid\r\n" in t.seen and b"has no terminals" in t.seen and t.status == 0,
       "who types at a terminal gets the output, and is told", t.seen)


def interrupted(c):
    child = c.home.start("exec", "app", "--", "sh", "-c", "sleep 3; echo end > " + os.path.join(c.home.top, "on"))
    n = execs(c.agent)
    until(lambda: execs(c.agent) != n, 60)
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=60)[1]
    ok(child.returncode == -signal.SIGINT and b"it may go on in app" in err, "Ctrl-C ends asb, which says that it cannot end the command", err)
    ok(until(lambda: os.path.exists(os.path.join(c.home.top, "on")), 60), "it went on")
    c.proxy.faults.extend([None, "cut"])
    n = execs(c.agent)
    r = c.call("exec", "app", "--", "true")
    ok(r.returncode == 125 and b"what became of the command is not known" in r.stderr, "a cut connection", r.stderr)
    same(execs(c.agent), n + 1, "and it is not started again")
    c.proxy.faults.extend(["403"])
    same(c.call("exec", "app", "--", "echo", "ok").stdout, b"ok\n", "a token that is refused")
    for say, words in (((200, "application/json", b"{"), "answer about the command"),
                       ((200, "application/json", b'{"exit_code":1.5,"stdout":"","stderr":""}'), "answer about the command"),
                       ((200, "application/json", b'{"exit_code":0,"stdout":"a","stderr":""}'), "answer about the command"),
                       ((200, "application/json", b'{"exit_code":0,"stdout":7,"stderr":""}'), "answer about the command"),
                       ((422, "application/json", b'{"detail":[{"msg":"Field required"}]}'), "cannot start"),
                       ((418, "text/html", b"<p>no</p>"), "HTTP 418")):
        c.agent.say = say
        r = c.call("exec", "app", "true")
        ok(r.returncode == 125 and words.encode() in r.stderr, f"an answer of {say[0]} {say[2]!r:.50}", r.stderr)
    c.agent.say = (200, "application/json", json.dumps({"exit_code": 0, "stdout": base64.b64encode(b"x" * 100).decode(), "stderr": "",
                                                         "more": None}).encode())
    same(c.call("exec", "app", "true").stdout, b"x" * 100, "members that are not known")
    c.agent.say = None
    c.agent.html = True
    same(c.call("exec", "app", "--", "echo", "ok").stdout, b"ok\n", "an agent that says in HTML what it has not")
    c.agent.html = False


def gone(child, pid_file):
    """Three looks at an agent that has gone take a minute, so that they go on while the rest is done."""
    out, err = child.communicate(timeout=150)
    ok(child.returncode == 125 and out == b"" and b"what became of the command is not known" in err and b"HTTP 502" in err,
       "a command whose agent does not answer any more is not waited for", child.returncode, err)
    with open(pid_file, encoding="ascii") as f, contextlib.suppress(ProcessLookupError):
        os.kill(int(f.read()), signal.SIGKILL)


def files(c):
    top = c.home.top
    here, there = os.path.join(top, "here"), os.path.join(top, "there")
    data = os.urandom(3000000)
    with open(here, "wb") as f:
        f.write(data)
    r = c.call("cp", here, f"app:{there}/new/file")
    ok(r.returncode == 0 and open(f"{there}/new/file", "rb").read() == data, "a file in, under a name", r.stderr)
    r = c.call("cp", here, f"app:{there}/new")
    ok(r.returncode == 0 and open(f"{there}/new/here", "rb").read() == data, "into a directory that is there", r.stderr)
    r = c.call("cp", here, f"app:{there}/dir/")
    ok(r.returncode == 0 and open(f"{there}/dir/here", "rb").read() == data, "into one whose name ends in /", r.stderr)
    r = c.call("cp", "--json", f"app:{there}/new/file", os.path.join(top, "back"))
    ok(r.returncode == 0 and open(os.path.join(top, "back"), "rb").read() == data and json.loads(r.stdout)["bytes"] == len(data), "out", r.stderr)
    os.mkdir(os.path.join(top, "into"))
    r = c.call("cp", f"app:{there}/new/file", os.path.join(top, "into"))
    ok(r.returncode == 0 and open(os.path.join(top, "into/file"), "rb").read() == data, "out, into a directory", r.stderr)
    r = c.call("cp", f"app:{there}/none", os.path.join(top, "none"))
    ok(r.returncode == 1 and b"no such file" in r.stderr and not os.path.exists(os.path.join(top, "none")), "one that is not there", r.stderr)
    os.symlink(here, os.path.join(top, "link"))
    for words, why in (([os.path.join(top, "into"), "app:/tmp/x"], "single files only"), ([f"app:{there}", os.path.join(top, "y")], "single files only"),
                       (["-", "app:/tmp"], "compatible routes only"), ([f"app:{there}/new", "-"], "compatible routes only"),
                       (["-a", here, f"app:{there}/z"], "owner"), ([os.path.join(top, "link"), f"app:{there}/z"], "no symbolic links")):
        r = c.call("cp", *words)
        ok(r.returncode == 1 and why.encode() in r.stderr and b"asb image init makes the folder of one" in r.stderr, "cp " + " ".join(words).replace(top, ""), r.stderr)
    same(c.call("cp", "-L", os.path.join(top, "link"), f"app:{there}/z").returncode, 0, "-L")
    with open(os.path.join(top, "big"), "wb") as f:
        f.truncate((64 << 20) + 1)
    r = c.call("cp", os.path.join(top, "big"), f"app:{there}/big")
    ok(r.returncode == 1 and b"64 MiB" in r.stderr, "one that is too long", r.stderr)
    r = c.call("cp", here, "app:/proc/nothing/here")
    ok(r.returncode == 1, "where nothing can be written", r.stderr)


def by_mcp(c):
    path = os.path.join(c.home.top, "tools/f")
    with _mcp.Server(c.home, "--backend", "aws", env={"AGENT_SANDBOX_WORKDIR": "/tmp"}) as s:
        d = s.data("sandbox_exec", name="app", command="sh", args=["-c", "echo $A; exit 7"], env={"A": "é"})
        same((d["exit_code"], d["stdout"]["text"]), (7, "é\n"), "sandbox_exec")
        s.notes.clear()
        n = s.start("tools/call", {"name": "sandbox_exec", "_meta": {"progressToken": "t"},
                                   "arguments": {"name": "app", "command": "sleep", "args": ["6"]}})
        r = s.wait(n)
        told = [m["params"]["progress"] for m in s.notes if m["method"] == "notifications/progress"]
        ok(len(told) >= 2 and told == sorted(set(told)), "sandbox_exec tells that time passes", told, r)
        same(s.data("sandbox_fs_write", name="app", path=path, content="héllo")["bytes_written"], 6, "sandbox_fs_write")
        d = s.data("sandbox_fs_read", name="app", path=path, offset=1)
        same((d["content"]["text"], d["size"]), ("éllo", 6), "sandbox_fs_read")
        same(s.error("sandbox_fs_read", name="app", path=path + "x")["code"], "AgentError", "a file that is not there")
        e = s.error("sandbox_fs_list", name="app", path="/")
        ok("compatible routes only" in e["message"], "what its agent has not", e)


with Cloud(guest=Guest()) as cloud:
    same(cloud.call("create", "app", "--image", IMAGE).returncode, 0, "a sandbox")
    same(cloud.call("create", "unwell", "--image", IMAGE).returncode, 0, "another one")
    cloud.proxy.unwell.add(cloud.vm("unwell")["microvmId"])
    pid_file = os.path.join(cloud.home.top, "pid")
    unwell = cloud.home.start("exec", "unwell", "--no-stdin", "--", "sh", "-c", f"echo $$ >{pid_file}; exec sleep 140")
    until(lambda: os.path.exists(pid_file) and os.path.getsize(pid_file), 60)
    cloud.agent.seen.clear()
    commands(cloud)
    stdin(cloud)
    refused(cloud)
    interrupted(cloud)
    files(cloud)
    by_mcp(cloud)
    gone(unwell, pid_file)
    same(cloud.aws.refused, [], "every request was as the service takes it")
done()
