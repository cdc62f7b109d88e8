#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 300
"""Commands with a terminal: letter C of the case list, and A2."""
import hashlib
import os
import re
import signal
import threading
import time

from _agentd import *

ME = os.getpid()
a = Agentd()
names = (f"p{i}" for i in range(10**6))


def alive(n):
    return processes(f"sleep\0{n}.{ME}".encode())


def start(script, pty=None, **spec):
    name = next(names)
    s, b = a.put(name, shell=script, pty={} if pty is None else pty, **spec)
    assert s == 201, (s, b)
    return name


def run(script, **spec):
    """(output, exit event)"""
    name = start(script, **spec)
    out, err, events = a.output(name)
    assert err == b"" and events[-1]["event"] == "exit", (err, events)
    a.request("DELETE", f"/v1/execs/{name}")
    return out, events[-1]


def feed(name, data, query=""):
    s, b, h = a.request("POST", f"/v1/execs/{name}/stdin{query}", data)
    return s, json.loads(b)


def seen(name, text, offset=0):
    """True as soon as the output holds text."""
    return until(lambda: text in a.output(name, offset, follow=False)[0])


base = a.fds()

# --- what it is
out, end = run("tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo three")
ok(re.fullmatch(rb"/dev/pts/\d+\r\n24 80\r\nthree\r\n", out) and end["exit_code"] == 0, "a terminal, 24 x 80", out)
out, end = run("tty </dev/tty; stty size", pty={"rows": 7, "cols": 133})
equal(out, b"/dev/tty\r\n7 133\r\n", "the controlling one, of the size that was asked for")
for pty, want in (({"rows": 0, "cols": 0}, b"1 1"), ({"rows": 99999, "cols": 10**12}, b"65535 65535"), ({"rows": 5}, b"5 80")):
    out, end = run("stty size", pty=pty)
    equal(out.strip(), want, f"a start with {pty}")
out, end = run("echo $TERM $LANG $A", env={"A": "b"})
equal(out, b"xterm-256color C.UTF-8 b\r\n", "C54, C55: the environment of every command")
out, end = run("echo $TERM $LANG", env={"TERM": "dumb", "LANG": "C"})
equal(out, b"dumb C\r\n", "  and the caller's wins")
out, end = run("stty -a")
ok(b" iutf8" in out and b"-iutf8" not in out, "C54: the line discipline knows UTF-8", out)
out, end = run("exec ps -o pid=,pgid=,sid=,tpgid= -p $$")
ok(len(set(out.split())) == 1, "its own session, group, and foreground", out)
out, end = run("echo out; echo err >&2")
equal(out, b"out\r\nerr\r\n", "both streams are stream 1")
for spec in (1, True, "x", [], {"rows": -1}, {"rows": 1.5}, {"rows": "24"}, {"x": 1}):
    s, b = a.put("bad", shell="true", pty=spec)
    ok(s == 400 and "pty" in b["detail"], f"pty {spec} is 400", (s, b))
s, b = a.put("bad", argv=["/no/such"], pty={})
ok(s == 404 and a.json("GET", "/v1/execs/bad")[0] == 404, "a command that is not there leaves nothing", (s, b))

# --- ends
out, end = run("exit 5")
ok(out == b"" and end["exit_code"] == 5 and end["signal"] is None, "C51: EIO at the master is the end", (out, end))
out, end = run("kill -9 $$")
equal((end["signal"], end["exit_code"]), (9, None), "death by a signal")
out, end = run("exec >/dev/null 2>&1 </dev/null; sleep 0.3; echo back >/dev/tty; exit 4")
ok(out == b"back\r\n" and end["exit_code"] == 4, "a leader may let go of its terminal and come back", (out, end))
began = time.monotonic()
out, end = run(f"trap '' HUP; sleep 61.{ME} & exit 3")
ok(end["exit_code"] == 3 and time.monotonic() - began < 10, "A1, A2: a background child delays nothing", end)
for p in alive(61):
    os.kill(p, signal.SIGKILL)
name = next(names)
a.put(name, argv=["bash", "--norc", "-i"], pty={})
feed(name, f"set +o monitor; set -m; sleep 62.{ME} & sleep 0.1; exit 6\n".encode())
out, err, events = a.output(name)
ok(events[-1]["exit_code"] == 6, "A2: an interactive shell with a background job ends", (out, events))
ok(until(lambda: not alive(62)), "  and the job, of another group, gets HUP")
name = start(f"sh -c 'kill -STOP $$; exec sleep 63.{ME}' & setsid sleep 64.{ME} & sleep 0.3; exit 0")
a.output(name)
time.sleep(0.3)
ok(len(alive(64)) == 1, "  what has a session of its own lives on")
ok(not processes(f"sleep 63.{ME}".encode()), "  what was stopped has ended too")
for p in alive(64):
    os.kill(p, signal.SIGKILL)
out, end = run(f"sleep 65.{ME} & setsid sleep 65.{ME} & sleep 66.{ME}", timeout_ms=500)
ok(end["timed_out"] and until(lambda: not alive(65) and not alive(66)), "a time limit ends the tree", end)

# --- bytes
out, end = run("stty -opost; head -c 3000000 /dev/urandom >$F; cat $F", env={"F": a.dir + "/blob"})
equal(hashlib.sha256(out).digest(), hashlib.sha256(open(a.dir + "/blob", "rb").read()).digest(), "3 MB without post-processing are exact")
bad = sum(run("echo hello")[0] != b"hello\r\n" for i in range(300))
equal(bad, 0, "C59: what is printed at once is there, 300 times")
name = start("stty -opost; head -c 1048560 /dev/zero; head -c 9000 /dev/zero | tr '\\0' x; exit 2")
time.sleep(1)  # the log is full and agentd does not read; the leader ends with its last bytes in the terminal
out, err, events = a.output(name)
ok(len(out) == 1057560 and out.endswith(b"x" * 9000) and events[-1]["exit_code"] == 2, "the last bytes survive the hang-up of the kernel",
   (len(out), events))
a.request("DELETE", f"/v1/execs/{name}")
name = start("stty raw -echo; printf ready; head -c 300000 | md5sum")
ok(seen(name, b"ready"), "a raw terminal")
data = os.urandom(300000)
equal(feed(name, data), (200, {"offset": 300000}), "takes 300 kB with flow control")
out, err, events = a.output(name)
equal(out[5:37], hashlib.md5(data).hexdigest().encode(), "  and every byte arrives")

# --- end of input
name = start("cat; echo done")
equal(feed(name, b"line\n", "?eof=1"), (200, {"offset": 5}), "eof=1 on a terminal")
out, err, events = a.output(name)
ok(out == b"line\r\nline\r\ndone\r\n" and events[-1]["exit_code"] == 0, "  types the end of the input", out)
name = start("cat; echo done")
feed(name, b"half", "?eof=1")
out, err, events = a.output(name)
equal(out, b"halfhalfdone\r\n", "  also in the middle of a line")
name = start("cat; stty eof ^B; echo again; cat; echo over; cat; echo never")
equal(feed(name, b"", "?offset=0&eof=1"), (200, {"offset": 0}), "the end with an offset")
ok(seen(name, b"again"), "  is typed")
equal(feed(name, b"", "?offset=0&eof=1")[0], 200, "  a repetition")
time.sleep(0.3)
ok(b"over" not in a.output(name, follow=False)[0], "  types nothing")
feed(name, b"x\n", "?offset=0&eof=1")
ok(seen(name, b"over"), "  and the next one is the character that the terminal has now")
a.request("DELETE", f"/v1/execs/{name}")
name = start("cat >/dev/null; stty -opost; head -c 1048576 /dev/zero; echo end")
feed(name, b"", "?eof=1")
out, err, events = a.output(name)
ok(len(out) == 1048580 and out.endswith(b"end\n"), "C52: 1 MiB after the end of the input is all there", len(out))

# --- size and signals
name = start("trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done")
ok(seen(name, b"up"), "a command that watches its size")
for rows, cols, want in ((0, 0, b"1 1\r\n"), (65535, 65535, b"65535 65535\r\n"), (10**9, 40, b"65535 40\r\n"), (30, None, b"30 40\r\n")):
    at = a.json("GET", f"/v1/execs/{name}")[1]["stdout_bytes"]
    equal(a.json("POST", f"/v1/execs/{name}/resize", {"rows": rows, "cols": cols}), (200, {}), f"C56: resize to {rows} x {cols}")
    ok(seen(name, want, at), f"  it sees {want}", a.output(name, at, follow=False))
equal(a.json("GET", f"/v1/execs/{name}")[1]["pty"], {"rows": 30, "cols": 40}, "  and the record tells it")
for body in (b"", b"[]", b'{"rows":"x"}', b'{"rows":-1}', b'{"row":1}'):
    equal(a.request("POST", f"/v1/execs/{name}/resize", body)[0], 400, f"resize {body!r} is 400")
a.json("POST", f"/v1/execs/{name}/signal", {"signal": "KILL"})
ok(until(lambda: a.json("GET", f"/v1/execs/{name}")[1]["state"] == "exited"), "KILL ends it")
equal(a.json("POST", f"/v1/execs/{name}/resize", {"rows": 1})[0], 410, "resize of what has ended")
equal(a.json("POST", "/v1/execs/nobody/resize", {"rows": 1})[0], 404, "resize of nothing")
a.put("plain", argv=["sleep", "100"])
equal(a.json("POST", "/v1/execs/plain/resize", {"rows": 1})[0], 409, "resize without a terminal")
a.request("DELETE", "/v1/execs/plain")
for i in range(50):  # before the first output
    name = start("stty size")
    s, b = a.json("POST", f"/v1/execs/{name}/resize", {"rows": 1, "cols": 1})
    if s not in (200, 410):
        break
    a.request("DELETE", f"/v1/execs/{name}")
ok(s in (200, 410), "C56: a resize at the very start, 50 times", (s, b))
name = start(f"trap 'echo leader' INT; sh -c 'trap \"echo child; exit 0\" INT; echo up; while :; do sleep 0.05; done'; sleep 0.2; exit 9")
ok(seen(name, b"up"), "two that watch for INT")
equal(feed(name, b"\x03")[0], 200, "^C is typed")
out, err, events = a.output(name)
ok(b"child" in out and b"leader" in out and events[-1]["exit_code"] == 9, "  and both get INT", out)
name = next(names)
a.put(name, argv=["bash", "--norc", "-i"], pty={})
feed(name, f"sleep 67.{ME}; echo code $?\n".encode())
ok(until(lambda: alive(67)), "a job in the foreground of a shell")
for sig in ("INT", "USR1"):
    equal(a.json("POST", f"/v1/execs/{name}/signal", {"signal": sig, "to": "group"}), (200, {}), f"{sig} to the group")
    ok(until(lambda: not alive(67)), "  is for the foreground, the shell lives on")
    feed(name, f"sleep 67.{ME}; echo code $?\n".encode())
    ok(until(lambda: alive(67)), "  and takes the next command")
a.request("DELETE", f"/v1/execs/{name}")

# --- nothing stays
for n in [e["id"] for e in a.json("GET", "/v1/execs")[1]["execs"]]:
    a.request("DELETE", f"/v1/execs/{n}?kill=1")
ok(until(lambda: a.fds() <= base + 1), "no descriptor is left", (base, a.fds()))
equal(run("echo alive")[0], b"alive\r\n", "agentd is alive")
done()
