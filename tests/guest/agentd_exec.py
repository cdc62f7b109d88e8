#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 1500
"""The exec engine: every rule of the design, with the public bug that it comes from (letter and number of the case list).

AGENTD_TEST_CGROUP=1 (set by agentd_cgroup.sh) says that cgroup2 is mounted at the usual place.
"""
import hashlib
import http.client
import json
import os
import signal
import socket
import threading
import time

from _agentd import *

CGROUP = os.environ.get("AGENTD_TEST_CGROUP") == "1"
MANY = int(os.environ.get("AGENTD_TEST_MANY") or (1000 if CGROUP else 10000))  # what does not depend on cgroups is done in full once
ME = os.getpid()
a = Agentd()
s, info = a.json("GET", "/v1/info")
equal(info["cgroups"], CGROUP, "info tells whether trees are cgroups")
ok(a.rss() <= 1024, f"at rest agentd has {a.rss()} KiB")


def nap(n):
    """A command that sleeps for N seconds and is ours: alive(N) finds it."""
    return f"sleep {n}.{ME}"


def alive(n):
    return processes(f"sleep\0{n}.{ME}".encode())


names = (f"e{i}" for i in range(10**6))


def native(**spec):
    """(stdout, stderr, exit event) of a native exec"""
    name = next(names)
    s, b = a.put(name, **spec)
    assert s == 201, (s, b)
    out, err, events = a.output(name)
    a.request("DELETE", f"/v1/execs/{name}")
    return out, err, events[-1] if events else None


# --- A: output and status, on both surfaces
for script, want, code in (
    ("printf 'a\\nb'", b"a\nb", 0),                                        # A4
    ("printf 'a\\n\\nb\\n\\n\\nc\\n'", b"a\n\nb\n\n\nc\n", 0),             # A5
    ("printf '10%%\\r50%%\\r'; printf '100%%\\n'", b"10%\r50%\r100%\n", 0),  # A6
    ("head -c 3000000 /dev/zero | tr '\\0' x", b"x" * 3000000, 0),         # A7
    ("cat; echo done", b"done\n", 0),                                      # A25
    ("", b"", 0), ("true # x", b"", 0), ("exit 12", b"", 12),               # A33
    ("cat <<'EOF'\nhi\nEOF\n", b"hi\n", 0), ("echo ok", b"ok\n", 0),       # A34
    ("printf '\\001\\001\\001x'", b"\1\1\1x", 0),                            # F107
    ("exit 125", b"", 125), ("exit 126", b"", 126), ("exit 127", b"", 127),  # A12
):
    s, b = a.sh(script)
    ok(s == 200 and b["stdout"] == want and b["exit_code"] == code, f"{script[:40]!r}", (s, str(b)[:200]))
    out, err, end = native(shell=script)
    ok(out == want and err == b"" and end["exit_code"] == code and end["signal"] is None and end["offset"] == len(want),
       "  the same natively", (out[:100], end))
s, b = a.sh("}")
ok(b["exit_code"] == 2 and b["stderr"], "A33: a syntax error is the shell's own", b)
s, b = a.sh("kill -9 $$")
ok(b["signal"] == 9 and b["exit_code"] == -9, "A10: death by a signal", b)
out, err, end = native(shell="kill -9 $$")
ok(end["signal"] == 9 and end["exit_code"] is None, "  natively", end)
out, err, end = native(shell="echo o; echo e >&2; echo o2")
ok(out == b"o\no2\n" and err == b"e\n", "F107: the streams are not mixed up", (out, err))
for argv in ([], [""], ["", "x"]):
    s, b = a.put("bad", argv=argv)
    ok(s == 400, f"A30: argv {argv!r} is a clear error", (s, b))
args = [f"a{i}" for i in range(5000)]
out, err, end = native(argv=["sh", "-c", "echo $# ${5000}", "sh", *args])
equal(out, b"5000 a4999\n", "A30: 5000 arguments arrive")
os.mkdir(a.dir + "/a=b")
with open(a.dir + "/a=b/tool", "w") as f:
    f.write("#!/bin/sh\necho found\n")
os.chmod(a.dir + "/a=b/tool", 0o755)
out, err, end = native(argv=["tool"], env={"PATH": f"{a.dir}/a=b:/usr/bin:/bin"})
equal(out, b"found\n", "A21: PATH with an = in it")
out, err, end = native(shell="echo $HOME", env={"HOME": "/x"})
equal(out, b"/x\n", "A20: the caller's HOME")
out, err, end = native(shell="printf %s \"$V\"", env={"V": "\\n\"\\\\\u00e9\n"})
equal(out, "\\n\"\\\\\u00e9\n".encode(), "A31: escapes are decoded once")
out, err, end = native(argv=["env"], clear_env=True, env={"A": "1"})
ok(out in (b"A=1\n",), "clear_env", out)
b2 = Agentd(env={"HOME": "/"})
s, b = b2.sh("cd ~ && pwd")
home = [x.split(":")[5] for x in open("/etc/passwd") if x.split(":")[2] == str(os.getuid())][0]
equal(b["stdout"].decode(), os.path.realpath(home) + "\n", "A22: without a HOME it is passwd's")
s, b = b2.exec("env")
env = dict(x.split("=", 1) for x in b["stdout"].decode().splitlines())
ok(all(k in env for k in ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM")) and
   not any(k.startswith(("AGENTD_", "ASB_")) for k in env), "the base environment", env)
b2.stop()

# --- A: starts that fail
s, b = a.json("GET", "/v1/execs")
equal(b, {"execs": []}, "nothing is listed")
for spec, status, step in (({"argv": ["nonesuch"]}, 404, "exec"), ({"argv": ["/etc/passwd"]}, 403, "exec"),
                           ({"argv": ["true"], "cwd": "/no/dir"}, 400, "cwd"),
                           ({"argv": ["true"], "cwd": "/etc/passwd"}, 400, "cwd"),
                           ({"argv": ["true", "x" * 3000000]}, 400, "exec")):
    s, b = a.put("bad", **spec)
    ok(s == status and b["step"] == step and b["errno"] and b["detail"], f"A17, A18: {str(spec)[:50]} is {status}", (s, b))
equal(a.json("GET", "/v1/execs")[1], {"execs": []}, "A17: and leaves no record")
for spec in ({}, {"argv": ["true"], "shell": "true"}, {"argv": "true"}, {"argv": [1]}, {"shell": 1}, {"argv": ["true"], "x": 1},
             {"argv": ["true"], "env": {"A": 1}}, {"argv": ["true"], "env": []}, {"argv": ["true"], "timeout_ms": -1},
             {"argv": ["true"], "timeout_ms": 1.5}, {"argv": ["true"], "stdin": "yes"}, {"argv": ["true"], "pty": 1},
             {"argv": ["true"], "cwd": 5}, {"argv": ["true"], "env": {"A=": "1"}}):
    s, b = a.put("bad", **spec)
    ok(s == 400 and "detail" in b, f"PUT {json.dumps(spec)[:60]} is 400", (s, b))
for body in (b"", b"{", b"[]", b"\xff", b'{"shell":"a\\u0000"}'):
    s, b, h = a.request("PUT", "/v1/execs/bad", body)
    ok(s == 400, f"PUT {body!r} is 400", (s, b))
for name in ("a.b", "a%20b", "a" * 65, "a%2fb", "%e4"):
    s, b, h = a.request("PUT", "/v1/execs/" + name, b'{"shell":"true"}')
    ok(s == 400, f"the id {name[:10]!r} is refused", (s, b))

# --- idempotent start
s, b = a.put("same", shell="echo x >> " + a.dir + f"/once; {nap(100)}")
s2, b2_ = a.put("same", shell="echo x >> " + a.dir + f"/once; {nap(100)}")
ok(s == 201 and s2 == 200 and b["pid"] == b2_["pid"], "the same request again starts nothing", (s, s2))
time.sleep(0.2)
equal(open(a.dir + "/once").read(), "x\n", "A29: it ran once")
s, b = a.put("same", shell="true")
equal(s, 409, "another request under a live id")
for i in range(100):
    name = next(names)
    a.put(name, argv=nap(100).split())
    s, b = a.json("POST", f"/v1/execs/{name}/signal", {"signal": "TERM"})
    if s != 200:
        break
    a.request("DELETE", f"/v1/execs/{name}")
equal(s, 200, "A15: cancelled the instant its id is returned, 100 times")
s, b, h = a.request("DELETE", "/v1/execs/same")
ok(s == 200 and a.json("GET", "/v1/execs/same")[0] == 404 and a.request("DELETE", "/v1/execs/same")[0] == 404, "DELETE forgets")
ok(until(lambda: not alive(100)), "and kills")
s, b = a.put("same", shell="true")
equal(s, 201, "the id is free again")
a.request("DELETE", "/v1/execs/same")

# --- A1 and B: trees
start = time.monotonic()
s, b = a.sh(nap(61) + " & exit 3")
ok(b["exit_code"] == 3 and time.monotonic() - start < 10, "A1: a background child delays nothing", b)
ok(alive(61), "and lives on")
for p in alive(61):
    os.kill(p, signal.SIGKILL)
late = {native(shell="(sleep 0.01; echo late) & echo early; exit 0")[0] for i in range(5)}  # a loaded machine may miss the linger
ok(b"early\nlate\n" in late and late <= {b"early\nlate\n", b"early\n"}, "what comes within the linger is captured", late)
TREE = (f"{nap(301)} & setsid {nap(302)} & (setsid sh -c '{nap(303)} & setsid {nap(304)} >/dev/null 2>&1 & wait' &) ; "
        f"nohup {nap(305)} >/dev/null 2>&1 & echo up; wait")
for run in (lambda: a.sh(TREE, timeout=1.0)[1], lambda: native(shell=TREE, timeout_ms=1000)[2]):
    start = time.monotonic()
    b = run()
    ok(b["timed_out"] and b["signal"] == 9 and time.monotonic() - start < 15, "B35: a timeout is kept", b)
    ok(until(lambda: not [p for n in range(301, 306) for p in alive(n)]),
       "B36: and ends the whole tree, double forks and setsid too")
s, b = a.sh("kill -TERM 0; sleep 100", timeout=20)
ok(b.get("signal") == 15 and a.request("GET", "/healthz")[0] == 200, "B42: kill 0 does not reach agentd", b)
s, b = a.sh("read x < /dev/tty; echo $?", timeout=20)
ok(s == 200 and b["stdout"] not in (b"", b"0\n"), "B43: no controlling terminal, and no stop", b)
name = next(names)
a.put(name, shell=TREE)
st = a.stream(name)
st.frame()
s, b = a.json("POST", f"/v1/execs/{name}/signal", {"signal": "KILL", "to": "tree"})
ok(s == 200 and st.all()[2][-1]["signal"] == 9 and
   until(lambda: not [p for n in range(301, 306) for p in alive(n)]), "KILL to the tree")
# a member of the tree that is dead and not reaped yet can still be signalled
ok(until(lambda: a.json("POST", f"/v1/execs/{name}/signal", {"signal": "TERM"})[0] == 410), "a signal after the end")
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, shell="trap 'echo usr1; exit 5' USR1; echo up; while :; do sleep 0.05; done")
st = a.stream(name)
st.frame()
for body, want in (({"signal": "NOPE"}, 400), ({}, 400), ({"signal": 0}, 400), ({"signal": 99}, 400),
                   ({"signal": "USR1", "to": "nobody"}, 400), ({"signal": "SIGUSR1", "to": "leader"}, 200)):
    s, b = a.json("POST", f"/v1/execs/{name}/signal", body)
    ok(s == want, f"signal {body} is {want}", (s, b))
out, err, events = st.all()
ok(out == b"usr1\n" and events[-1]["exit_code"] == 5, "a signal to the leader", (out, events))
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, shell=f"(setsid {nap(306)} >/dev/null 2>&1 &); sleep 0.1")
a.output(name)
equal(a.json("GET", f"/v1/execs/{name}")[1]["state"], "exited", "exited, though a background child lives")
a.request("DELETE", f"/v1/execs/{name}?kill=1")
ok(until(lambda: not alive(306)), "which DELETE kills with kill=1")
name = next(names)
a.put(name, shell=f"setsid {nap(307)} >/dev/null 2>&1 & exit 0")
a.output(name)
a.request("DELETE", f"/v1/execs/{name}")
time.sleep(0.2)
ok(alive(307), "and leaves alone without")
for p in alive(307):
    os.kill(p, signal.SIGKILL)

# --- what a child gets
out, err, end = native(shell="ls -l /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; "
                       "cat /proc/self/oom_score_adj; ps -o sid=,pid= -p $$")
lines = out.decode().splitlines()
ok(int(lines[0]) <= 5, "no descriptor beside 0, 1, 2", out)
ok(all(int(x.split()[1], 16) == 0 for x in lines[1:3]), "a clean mask, nothing ignored", out)
equal(lines[4], "0", "oom_score_adj is 0")
equal(lines[5].split()[0], lines[5].split()[1], "a session of its own")

# --- stdin
name = next(names)
a.put(name, argv=["cat"], stdin=True)
s, b = a.json("POST", f"/v1/execs/{name}/stdin", None)
equal((s, b), (200, {"offset": 0}), "an empty piece of input")
s, b, h = a.request("POST", f"/v1/execs/{name}/stdin", b"hello ")
equal(json.loads(b), {"offset": 6}, "input")
s, b, h = a.request("POST", f"/v1/execs/{name}/stdin?offset=3", b"lo world")
equal(json.loads(b), {"offset": 11}, "bytes that were taken are skipped")
s, b, h = a.request("POST", f"/v1/execs/{name}/stdin?offset=99", b"x")
equal(s, 409, "a gap")
s, b, h = a.request("POST", f"/v1/execs/{name}/stdin?eof=1", b"!")
equal(json.loads(b), {"offset": 12}, "the end")
out, err, events = a.output(name)
ok(out == b"hello world!" and events[-1]["exit_code"] == 0, "A28: cat ends, and its output is whole", (out, events))
ok(a.request("POST", f"/v1/execs/{name}/stdin", b"x")[0] in (409, 410), "input after the end")
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, argv=["true"])
equal(a.request("POST", f"/v1/execs/{name}/stdin", b"x")[0], 409, "input to a command without")
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, argv=nap(308).split(), stdin=True)
hung = threading.Thread(target=lambda: a.request("POST", f"/v1/execs/{name}/stdin", b"y" * 5000000))
hung.start()
time.sleep(0.3)
start = time.monotonic()
s, b = a.sh("echo free")
ok(b["stdout"] == b"free\n" and time.monotonic() - start < 5, "a command that does not read its stdin holds up nobody")
a.json("POST", f"/v1/execs/{name}/signal", {"signal": "KILL"})
hung.join(20)
ok(not hung.is_alive(), "and its end answers whoever feeds it")
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, shell="exec <&-; sleep 1", stdin=True)
time.sleep(0.3)
s, b, h = a.request("POST", f"/v1/execs/{name}/stdin", b"y" * 5000000)
equal(s, 410, "410 when the command has closed its end, although the body is long")
a.request("DELETE", f"/v1/execs/{name}")

# --- 10 MB through cat, both ways at once (asb run -- cat < file)
data = os.urandom(10_000_000)
name = next(names)
a.put(name, argv=["cat"], stdin=True)
st = a.stream(name)
feeder = threading.Thread(target=lambda: a.request("POST", f"/v1/execs/{name}/stdin?eof=1", data))
feeder.start()
out, err, events = st.all()
feeder.join()
ok(out == data and events == [events[-1]] and not events[-1]["truncated"], "cat of 10 MB is byte-exact", (len(out), events))
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, shell="head -c 10000000 /dev/zero; echo end")
time.sleep(1)
out, err, events = a.output(name)
ok(len(out) == 10000004 and not events[-1]["truncated"], "a command that runs ahead of its first reader loses nothing", len(out))
a.request("DELETE", f"/v1/execs/{name}")

# --- 1 GiB to a live reader, RSS flat
SIZE = 1 << 30
name = next(names)
a.put(name, shell=f"head -c {SIZE} /dev/zero")
st, n, peak = a.stream(name), 0, 0
start = time.monotonic()
while f := st.frame():
    if f[0] == 1:
        n += len(f[1])
    else:
        last = f
    peak = max(peak, a.rss()) if n % (1 << 24) < 40000 else peak
took = time.monotonic() - start
st.close()
ok(n == SIZE and json.loads(last[1])["exit_code"] == 0, f"1 GiB arrives ({n / took / 1e6:.0f} MB/s with this reader)", (n, last))
ok(peak < 6000, f"with {peak} KiB at the most", peak)
a.request("DELETE", f"/v1/execs/{name}")

# --- F: streams
name = next(names)
a.put(name, shell="i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i+1)); sleep 0.1; done")
st = a.stream(name)
got = b""
while len(got) < 40:
    got += st.frame()[1]
st.conn.sock.close()
st.close()
time.sleep(1)
out, err, events = a.output(name, offset=len(got))
ok(got + out == b"".join(b"line %d\n" % i for i in range(30)) and events[-1]["event"] == "exit",
   "F94, F96: a cut stream resumes at its offset", got + out)
whole = got + out
ok(all(a.output(name, follow=False)[0] == whole for i in range(100)), "F97: a finished log is the same 100 times")
for query, want in (("offset=x", 400), ("offset=-1", 400), ("follow=2", 400), (f"offset={len(whole) + 1}", 416)):
    equal(a.request("GET", f"/v1/execs/{name}/output?{query}")[0], want, f"output?{query}")
equal(a.request("GET", "/v1/execs/nobody/output")[0], 404, "output of an unknown exec")
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, shell="echo a; sleep 100")
time.sleep(0.2)
out, err, events = a.output(name, follow=False)
equal((out, events), (b"a\n", []), "without follow the answer ends with what there is, without an exit")
st = a.stream(name)
st.frame()
a.request("DELETE", f"/v1/execs/{name}")
try:
    end = st.frame()
except (http.client.IncompleteRead, ConnectionError, AssertionError):
    end = None
ok(end is None, "F94: a forgotten exec's stream has no exit event", end)
name = next(names)
a.put(name, argv=["yes"])
time.sleep(14)
rss = a.rss()
ok(rss < 4000, f"F99: yes with nobody attached is bounded ({rss} KiB)")
before = a.json("GET", f"/v1/execs/{name}")[1]["stdout_bytes"]
time.sleep(0.5)
ok(a.json("GET", f"/v1/execs/{name}")[1]["stdout_bytes"] > before, "and stands no longer than its time to attach")
st = a.stream(name)
first = st.frame()
ok(first[0] == 3 and json.loads(first[1])["event"] == "gap" and json.loads(first[1])["to"] > 0, "a late reader gets a gap", first)
slow = a.stream(name)  # never reads
n = 0
start = time.monotonic()
while time.monotonic() - start < 1.5:
    n += len(st.frame()[1])
ok(n > 20_000_000, "a reader that does not read holds up no other", n)
a.request("DELETE", f"/v1/execs/{name}")
st.close()
slow.close()

# --- F104: not HTTP
for data, name in ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300) + b"\n\n", "a TLS hello"),
                   (b"GET /heal", "half a request line"),
                   (b"GET /healthz HTTP/1.1\r\nHost: h\r\nA: " + b"a" * 1000000 + b"\r\n\r\n", "a header of 1 MB")):
    got = a.raw(data, timeout=2)
    ok(not got.startswith(b"HTTP/1.1 200") and a.request("GET", "/healthz")[0] == 200, f"F104: {name}", got[:100])
for i in range(50):
    c = socket.create_connection(("127.0.0.1", a.port))
    c.sendall(b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{")
ok(a.request("GET", "/healthz")[0] == 200, "50 stalled bodies hold up nobody")

# --- E90
tmp = a.dir + "/gone"
os.mkdir(tmp)
s, b = a.sh(f"rm -rf {tmp}; cd {tmp} 2>/dev/null; echo works", cwd=tmp)
s, b = a.sh("echo works")
equal(b["stdout"], b"works\n", "E90: a directory that is removed under it does not matter")

# --- many
base = a.fds()
for i in range(200):
    a.sh("exit 0")
results = [None] * 200


def one(i):
    results[i] = a.sh(f"exit {i + 1}", timeout=50)[1].get("exit_code") if i % 2 else native(shell=f"exit {i + 1}")[2]["exit_code"]


threads = [threading.Thread(target=one, args=(i,)) for i in range(200)]
for t in threads:
    t.start()
for t in threads:
    t.join()
equal(results, list(range(1, 201)), "A14: 200 at once, each with its own status")
c = http.client.HTTPConnection("127.0.0.1", a.port)


def kept(method, path, body):
    c.request(method, path, body, {"Content-Type": "application/json"})
    r = c.getresponse()
    return r.status, r.read()


rss = a.rss()
bad = sum(kept("POST", "/v1/exec", '{"command":"/no/such"}')[0] != 400 for i in range(MANY // 2))
bad += sum(kept("PUT", f"/v1/execs/m{i}", '{"argv":["/no/such"]}')[0] != 404 for i in range(MANY // 2))
equal(bad, 0, f"A16: {MANY} starts of a missing path")
ok(until(lambda: a.fds() <= base + 60), "leave no descriptor", (base, a.fds()))
ok(a.rss() < rss + 512, f"and no memory ({rss} -> {a.rss()} KiB)")
for i in range(MANY // 5):
    kept("POST", "/v1/exec", '{"command":"sh","args":["-c","for i in 1 2 3 4 5; do (sleep 0.01 >/dev/null 2>&1 &); done"]}')
ok(until(lambda: not zombies(a.pid), 20), f"{MANY} orphans leave no zombie", zombies(a.pid))
c.close()
name = next(names)
a.put(name, shell="while :; do echo tick; sleep 0.02; done")
for i in range(1000):
    x = socket.create_connection(("127.0.0.1", a.port))
    x.sendall(f"GET /v1/execs/{name}/output?follow=1 HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    if i % 2:
        x.recv(10)
    x.close()
ok(until(lambda: a.fds() <= base + 70, 30), "1,000 aborted streams leave no descriptor", (base, a.fds()))
a.request("DELETE", f"/v1/execs/{name}")
name = next(names)
a.put(name, argv=nap(100).split())
for i in range(200):
    x = socket.create_connection(("127.0.0.1", a.port))
    x.sendall(f"GET /v1/execs/{name}/output?follow=1 HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    x.recv(1000)
    x.close()
ok(until(lambda: a.fds() <= base + 70, 30), "nor do 200 on a quiet command", (base, a.fds()))
a.request("DELETE", f"/v1/execs/{name}")

# --- a full table
full = [next(names) for i in range(257)]
codes = [a.put(n, argv=nap(309).split())[0] for n in full]
equal((codes[:256].count(201), codes[256]), (256, 429), "256 commands, then 429")
equal(a.sh("true")[0], 429, "for the compatible route too")
for n in full[:256]:
    a.request("DELETE", f"/v1/execs/{n}")
ok(until(lambda: not alive(309)), "all are killed")
ok(until(lambda: a.json("GET", "/v1/info")[1]["slots"] == 0), "and the table is empty", a.json("GET", "/v1/info"))
codes = [a.put(next(names), argv=["true"])[0] for i in range(300)]
equal(codes.count(201), 300, "ended commands make room for new ones")

# --- token, private socket, drain
with open(a.dir + "/token", "w") as f:
    f.write("s3cret\n")
t = Agentd(env={"AGENTD_TOKEN_FILE": a.dir + "/token"})
for headers, want in (({}, 401), ({"Authorization": "Bearer s3cret"}, 404), ({"Authorization": "bearer s3cret"}, 404),
                      ({"Authorization": "Bearer s3cre"}, 401), ({"Authorization": "Bearer s3cretx"}, 401),
                      ({"Authorization": "Bearer "}, 401), ({"Authorization": "Basic s3cret"}, 401),
                      ({"Authorization": b"Bearer s3cr\xe9t"}, 401)):
    equal(t.request("GET", "/v1/execs/none", headers=headers)[0], want, f"token {headers}")
equal(t.request("GET", "/healthz")[0], 200, "healthz is open")
got = t.raw(b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nContent-Length: 60000000\r\n\r\n", timeout=5)
ok(got.startswith(b"HTTP/1.1 401 "), "401 comes before the body", got[:60])
equal(t.private(op="ping")["ok"], True, "the private socket answers")
r = t.private(op="identity", generation="0123456789abcdef" * 2, env={"WHO": "me"}, agent_token="new")
ok(r["ok"], "a new identity", r)
equal(t.request("GET", "/v1/info", headers={"Authorization": "Bearer s3cret"})[0], 401, "the old token is out")
s, b = t.json("POST", "/v1/exec", {"command": "sh", "args": ["-c", "echo $WHO"]}, {"Authorization": "Bearer new"})
equal(b["stdout"], "bWUK", "its environment reaches commands")
equal(t.json("GET", "/v1/info", headers={"Authorization": "Bearer new"})[1]["generation"], "0123456789abcdef" * 2, "its generation is told")
equal(t.private(op="exec_check"), {"ok": True}, "the check program runs")
t.proc.kill()
t.proc.wait()
u = Agentd(env={"AGENTD_SOCKET": t.socket})
equal(u.request("GET", "/v1/info")[0], 401, "an agentd that is started again wants the token")
equal(u.json("GET", "/v1/info", headers={"Authorization": "Bearer new"})[1]["generation"], "0123456789abcdef" * 2,
      "and knows who it is")
u.stop()
with open(t.socket + ".identity", "w") as f:
    f.write("{")
equal(subprocess.run([BIN], env={**u.env, "ASB_NOTIFY_FD": ""}, capture_output=True, timeout=20).returncode, 2,
      "with a broken identity it does not start open")
t.stop()
slow_done = []
slow = threading.Thread(target=lambda: slow_done.append(a.sh("sleep 1.5; echo done")))
slow.start()
time.sleep(0.3)
start = time.monotonic()
r = a.private(op="drain", timeout_ms=300, reopen_ms=20000)
ok(r["ok"] and r["drained"] is False and r["in_flight"] == 1, "a drain that is too short says so", r)
s, b, h = a.request("POST", "/v1/exec", b'{"command":"true"}')
ok(s == 503 and json.loads(b)["detail"].startswith("draining") and h["Retry-After"], "new work is refused while draining", (s, b))
equal(a.put("drain", argv=["true"])[0], 503, "a PUT too")
equal(a.json("POST", "/v1/fs/write", {"path": a.dir + "/no", "content": ""})[0], 503, "a write too")
equal(a.request("GET", "/healthz")[0], 200, "healthz answers")
r = a.private(op="drain", timeout_ms=10000, reopen_ms=20000)
ok(r["drained"] is True and r["in_flight"] == 0, "a drain waits for the request that is being answered", r)
slow.join()
equal(slow_done[0][1]["stdout"], b"done\n", "which is answered")
a.private(op="reopen")
equal(a.sh("true")[0], 200, "reopened")

# --- groups that a command makes in its own
if CGROUP:
    WORK = "/sys/fs/cgroup/asb/work"
    mine = f"g={WORK}/$(sed -n 's,^0::.*/,,p' /proc/self/cgroup); mkdir -p $g/a/b $g/c $g/.d"
    left = lambda: a.sh("true") and [n for n in os.listdir(WORK) if n[0] == "x"]  # the end of a command is when they are swept
    ok(until(lambda: not left()), "no group is left so far", left())
    equal(a.sh(mine)[1]["exit_code"], 0, "a command makes groups below its own")
    ok(until(lambda: not left()), "  which go with it", left())
    b = a.sh(f"{mine}; {nap(320)} >/dev/null 2>&1 & echo $! >$g/c/cgroup.procs; echo $!")[1]
    equal(b["exit_code"], 0, "and leaves a process in one")
    time.sleep(2.5)
    ok(any(os.path.isdir(f"{WORK}/{n}/a/b") and os.path.isdir(f"{WORK}/{n}/c") for n in left()), "  so that none of them goes")
    os.kill(int(b["stdout"]), signal.SIGKILL)
    ok(until(lambda: not left()), "  until it has ended", left())

# --- the end
ok(a.proc.poll() is None and a.rss() < 8000, f"agentd is alive with {a.rss()} KiB")
a.put("last", shell=f"trap '' TERM; {nap(310)} & setsid {nap(310)} & wait")
slow_done = []
slow = threading.Thread(target=lambda: slow_done.append(a.sh("sleep 0.7; echo done")))
slow.start()
time.sleep(0.3)
equal(a.stop(), 0, "SIGTERM ends it with 0")
slow.join()
equal(slow_done[0][1]["stdout"], b"done\n", "after the request that was being answered")
ok(until(lambda: not alive(310)), "and no tree is left")
b = Agentd(prefix=IGNORES_SIGCHLD)
equal(b.sh("exit 3", timeout=20)[1]["exit_code"], 3, "who starts it may ignore SIGCHLD")
equal(b.stop(), 0, "  and end it")
for env, want in (({"AGENTD_PORT": "x"}, 2), ({"AGENTD_PORT": "0"}, 2), ({"AGENTD_PORT": "65536"}, 2),
                  ({"AGENTD_TOKEN_FILE": "/no/such"}, 2), ({"AGENTD_BIND": "localhost"}, 1)):
    r = subprocess.run([BIN], env={"AGENTD_PORT": str(free_port()), "AGENTD_SOCKET": "/tmp/agentd-test-no.sock", **env},
                       capture_output=True, timeout=20)
    ok(r.returncode == want and r.stderr.startswith(b"agentd: error: "), f"{env}: exit {want} with a message", (r.returncode, r.stderr))
for arg, want in (("--version", b"agentd "), ("--help", b"usage: agentd")):
    r = subprocess.run([BIN, arg], capture_output=True, timeout=20)
    ok(r.returncode == 0 and r.stdout.startswith(want), arg)
equal(subprocess.run([BIN, "x"], capture_output=True, timeout=20).returncode, 2, "an unknown argument")
done()
