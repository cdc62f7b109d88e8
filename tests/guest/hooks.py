#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""asb-hooks with a real agentd: the six lifecycle hooks, as the platform and as a hostile process call them."""
# VARIANTS: sanitized
import concurrent.futures
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from _agentd import BIN_DIR, Agentd, done, equal, free_port, ok, sanitizer_env, skip, until

BIN = os.path.join(BIN_DIR, "asb-hooks")
PREFIX = "/aws/lambda-microvms/runtime/v1/"


class Hooks:
    def __init__(self, agent_socket, more=None, prefix=(), state=None):
        self.dir = state or tempfile.mkdtemp(prefix="hooks-test-")
        self.identity_path = os.path.join(self.dir, "identity")
        self.port = free_port()
        self.log_path = os.path.join(self.dir, "log")
        rd, wr = os.pipe()
        env = {"PATH": os.environ["PATH"], "AGENTD_HOOK_PORT": str(self.port), "AGENTD_SOCKET": agent_socket,
               "AGENTD_IDENTITY_PATH": self.identity_path, "ASB_ETC": os.path.join(self.dir, "etc"), "AGENTD_BIND": "127.0.0.1",
               "ASB_NOTIFY_FD": str(wr), **sanitizer_env(), **(more or {})}
        with open(self.log_path, "ab") as log:
            self.proc = subprocess.Popen([*prefix, BIN], env=env, pass_fds=[wr], stdin=subprocess.DEVNULL, stderr=log)
        os.close(wr)
        self.notified = os.read(rd, 10)
        os.close(rd)

    def call(self, hook, body=None, method="POST", timeout=30, path=None):
        """(status, body, seconds); status 0 when there was no answer."""
        t = time.monotonic()
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path or PREFIX + hook, body if body is not None else b"")
            r = c.getresponse()
            return r.status, r.read(), time.monotonic() - t
        except OSError as e:
            return 0, str(e).encode(), time.monotonic() - t
        finally:
            c.close()

    def status(self, hook, body=None, **kw):
        return self.call(hook, body, **kw)[0]

    def identity(self):
        try:
            with open(self.identity_path) as f:
                return f.read()
        except OSError:
            return None

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def script(self, hook, name, text):
        d = os.path.join(self.dir, "etc", *(["hooks.d", hook] if hook else []))
        os.makedirs(d, exist_ok=True)
        with open(os.path.join(d, name), "w") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(os.path.join(d, name), 0o755)

    def path(self, name):
        return os.path.join(self.dir, name)

    def read(self, name):
        try:
            with open(self.path(name)) as f:
                return f.read()
        except OSError:
            return None

    def stop(self, keep=False):
        self.proc.terminate()
        code = self.proc.wait(10)
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)
        return code


def envelope(payload=None, vm="microvm-1"):
    e = {"microvmId": vm}
    if payload is not None:
        e["runHookPayload"] = payload if isinstance(payload, str) else json.dumps(payload)
    return json.dumps(e)


def app(agent, command, token=None, timeout=30, **more):
    """POST /v1/exec of a shell command: (status, answer)."""
    c = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=timeout)
    h = {"Content-Type": "application/json", **({"Authorization": "Bearer " + token} if token else {})}
    try:
        c.request("POST", "/v1/exec", json.dumps({"command": "sh", "args": ["-c", command], **more}), h)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


def stop_agent(a):
    a.proc.terminate()
    a.proc.wait(20)
    shutil.rmtree(a.dir, ignore_errors=True)


def test_ready():
    h = Hooks("/nonexistent/agentd.sock")
    equal(h.notified, b"1", "says that it listens")
    st, body, t = h.call("ready")
    ok(st == 503 and t < 2, "ready is 503 at once while agentd is not there", (st, body, t))
    equal(h.status("validate"), 503, "so is validate")
    equal(h.status("suspend"), 200, "suspend is 200 all the same")
    equal(h.status("resume"), 200, "and resume")
    equal(h.status("terminate"), 200, "and terminate")
    equal(h.status("run", envelope(), timeout=20), 503, "run is not: the guest would have no identity")
    h.stop()
    a = Agentd()
    h = Hooks(a.socket)
    st, body, _ = h.call("ready")
    equal((st, body), (200, b""), "ready is 200 with an empty body when agentd answers")
    st, body, _ = h.call("validate")
    equal((st, body), (200, b""), "validate runs a program: 200")
    h.script(None, "ready", "exit 1")
    equal(h.status("ready"), 503, "the image's own check says no")
    h.script(None, "ready", "sleep 100")
    st, _, t = h.call("ready")
    ok(st == 503 and t < 20, "a check that hangs is a no", (st, t))
    h.script(None, "ready", "exit 0")
    equal(h.status("ready"), 200, "and yes")
    a.proc.send_signal(signal.SIGSTOP)
    st, _, t = h.call("ready")
    ok(st == 503 and t < 10, "an agentd that hangs is a 503", (st, t))
    a.proc.send_signal(signal.SIGCONT)
    ok(until(lambda: h.status("ready") == 200), "and is asked anew each time")
    equal(h.stop(), 0, "TERM ends it with 0")
    stop_agent(a)


def test_http():
    a = Agentd()
    h = Hooks(a.socket)
    for hook in ("ready", "validate", "run", "suspend", "resume", "sync", "terminate"):
        equal([h.status(hook, method=m) for m in ("GET", "PUT", "DELETE", "PATCH")], [405] * 4, f"{hook}: other methods are 405")
    equal(h.status("nonesuch"), 404, "another hook is 404")
    equal(h.status("", path="/"), 404, "so is another path")
    if not os.path.exists("/run/asb/init.sock"):
        equal(h.status("", path="/asb/v1/power-off"), 404, "and power-off outside a VM")
    equal(h.status("run", b"x" * (1 << 20)), 413, "a body of a megabyte is 413")
    for junk in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"POST", b"\0" * 4096, b"GET / HTTP/9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", h.port)) as s:
            s.sendall(junk)
    idle = [socket.create_connection(("127.0.0.1", h.port)) for _ in range(40)]
    equal(h.status("ready"), 200, "still there after junk, beside forty idle connections")
    for s in idle:
        s.close()
    equal(h.stop(), 0, "and ends orderly")
    bad = [subprocess.run([BIN], env={k: v}, capture_output=True, timeout=10).returncode
           for k, v in (("AGENTD_HOOK_PORT", "x"), ("AGENTD_HOOK_PORT", "70000"), ("AGENTD_SUSPEND_DRAIN_SECONDS", "soon"))]
    equal(bad, [1, 1, 1], "bad settings are refused")
    stop_agent(a)


def test_run():
    a = Agentd()
    h = Hooks(a.socket)
    bad = ["{", "[]", '"x"', envelope({"hostname": "-x"}), envelope({"env": {"A": 1}}), envelope({"env": {"A=B": "1"}}),
           envelope({"agent_token": ""}), envelope({"agent_token": 5}), envelope({"time": "noon"}), envelope({"time": -1}),
           envelope({"entropy": "A"}), '{"runHookPayload":5}', '{"runHookPayload":"\\u0000"}', b"\xff\xfe"]
    equal([h.status("run", b) for b in bad], [400] * len(bad), "bad envelopes and payloads are 400")
    equal(h.identity(), None, "and change nothing")
    equal(app(a, "true")[0], 200, "no token is wanted before")
    secret = "t-" + os.urandom(8).hex()
    body = envelope({"agent_token": secret, "env": {"FROM_RUN": "ja b", "OTHER": ""}, "entropy": "AAECAwQFBgc=",
                     "time": f"{time.time():.9f}", "colour": "blue"})
    st, out, _ = h.call("run", body)
    equal((st, out), (200, b""), "run with a payload of ours")
    first = h.identity()
    ok(first and re.fullmatch("[0-9a-f]{32}", first), "the identity is 32 hexadecimal digits and nothing else", first)
    equal(app(a, "true")[0], 401, "the token is wanted now")
    st, out = app(a, 'printf %s "$FROM_RUN"', secret)
    ok(st == 200 and b'"amEgYg=="' in out, "the environment has arrived", out)
    equal(json.loads(h.read("identity.payload") or "null"),
          {"env": {"FROM_RUN": "ja b", "OTHER": ""}, "time": json.loads(json.loads(body)["runHookPayload"])["time"], "colour": "blue"},
          "scripts can read the payload, less the secrets")
    equal(os.stat(h.path("identity.payload")).st_mode & 0o777, 0o600, "and only root can")
    equal(h.status("run", body), 200, "the same again is 200")
    equal([h.status("run", b) for b in (envelope(), envelope({"agent_token": "mine"}), "", "{", body + " ")], [409] * 5,
          "anything else is 409")
    equal((h.identity(), app(a, "true", secret)[0], app(a, "true", "mine")[0]), (first, 200, 401), "and changes nothing")
    h.stop(keep=True)
    h2 = Hooks(a.socket, state=h.dir)
    equal((h2.status("run", envelope()), h2.status("run", body)), (409, 200), "a restarted asb-hooks still knows")
    h2.stop(keep=True)
    h3 = Hooks(a.socket, state=h.dir, more={"ASB_INIT_ID": "another"})
    equal(h3.status("run", envelope("just text")), 200, "but a new start of the guest is a new life")
    equal(h3.read("identity.payload"), "just text", "a payload that is no JSON is kept as it came")
    ok(h3.identity() != first, "and a new identity")
    h3.stop()
    stop_agent(a)


def test_forms():
    forms = {"nothing": "", "no payload": envelope(), "an empty payload": envelope(""), "a bare payload": '{"env":{"A":"x"}}',
             "a payload that is an object": '{"microvmId":"m","runHookPayload":{"env":{"A":"x"}}}', "a list": envelope("[1]"),
             "4096 bytes": envelope("é" * 2048), "unknown keys": envelope({"x": {"y": [1, None]}, "env": None})}
    for name, body in forms.items():
        a = Agentd()
        h = Hooks(a.socket)
        equal((h.status("run", body), len(h.identity() or "")), (200, 32), f"run with {name}")
        if '"A"' in body.replace("\\", ""):
            ok(b'"eA=="' in app(a, "printf %s $A")[1], f"run with {name}: its environment counts")
        h.stop()
        stop_agent(a)


def test_race():
    a = Agentd()
    h = Hooks(a.socket)
    h.script("run", "10-count", f"echo x >> {h.path('count')}; sleep 0.3")
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        got = list(pool.map(lambda i: h.status("run", envelope({"n": i})), range(50)))
    equal((got.count(200), got.count(409)), (1, 49), "fifty different runs at once: one winner")
    winner = got.index(200)
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        again = list(pool.map(lambda i: h.status("run", envelope({"n": winner})), range(50)))
    equal(again.count(200), 50, "fifty times the winner's: all 200")
    h.stop()
    h = Hooks(a.socket)
    h.script("run", "10-count", f"echo x >> {h.path('count')}; sleep 0.3")
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        same = list(pool.map(lambda i: h.status("run", envelope("same")), range(50)))
    equal((same.count(200), h.read("count")), (50, "x\n"), "fifty equal runs at once: all 200, done once")
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        got = list(pool.map(lambda i: h.status(("resume", "ready", "validate")[i % 3]), range(50)))
    equal(got.count(200), 50, "fifty resumes, readies and validates at once")
    h.stop()
    stop_agent(a)


def test_resume():
    a = Agentd()
    h = Hooks(a.socket)
    ids = set()
    for _ in range(20):
        if h.status("resume") == 200:
            ids.add(h.identity())
    equal(len(ids), 20, "twenty resumes, twenty identities")
    equal(h.status("resume", "not json"), 200, "a bad body cannot hurt a resume")
    seen = [h.read("identity")]
    stop = threading.Event()

    def reader():
        while not stop.is_set():
            seen.append(h.identity())

    t = threading.Thread(target=reader)
    t.start()
    for _ in range(50):
        h.status("resume")
    stop.set()
    t.join()
    ok(all(s and len(s) == 32 for s in seen), "who reads the identity meanwhile always sees a whole one")
    ok("not reseeded" not in h.log(), "the kernel's generator took the reseed")
    h.stop()
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and setpriv:
        h = Hooks(a.socket, prefix=[setpriv, "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"])
        ok(h.status("resume") == 200 and "not reseeded" in h.log(), "without CAP_SYS_ADMIN it is fed, and the log says so", h.log())
        h.stop()
    else:
        skip("without CAP_SYS_ADMIN", "not root, or no setpriv")
    stop_agent(a)


def test_suspend():
    a = Agentd()
    h = Hooks(a.socket, {"AGENTD_SUSPEND_DRAIN_SECONDS": "6"})
    box = {}

    def slow():
        box["exec"] = app(a, "sleep 2; echo done")

    t = threading.Thread(target=slow)
    t.start()
    time.sleep(0.7)
    s = threading.Thread(target=lambda: box.update(suspend=h.call("suspend")))
    s.start()
    time.sleep(0.5)
    equal(app(a, "true")[0], 503, "while it drains, no exec is admitted")
    ok("suspend" not in box, "and suspend waits for the one in flight")
    t.join()
    s.join()
    st, body, took = box["suspend"]
    ok(st == 200 and body == b"" and 0.5 < took < 5.5, "then it says 200", box["suspend"])
    equal(box["exec"][0], 200, "the exec in flight has got its answer")
    equal(app(a, "true")[0], 503, "still shut after it")
    equal(h.status("resume"), 200, "resume")
    equal(app(a, "true")[0], 200, "opens it")
    h.stop()
    h = Hooks(a.socket, {"AGENTD_SUSPEND_DRAIN_SECONDS": "0.5"})
    t = threading.Thread(target=slow)
    t.start()
    time.sleep(0.5)
    st, _, took = h.call("suspend")
    ok(st == 200 and 0.4 < took < 1.9, "an exec that is longer than the limit does not hold it up", (st, took))
    t.join()
    equal(box["exec"][0], 200, "and survives")
    h.status("resume")
    h.stop()
    h = Hooks(a.socket, {"AGENTD_SUSPEND_DRAIN_SECONDS": "0"})
    equal((h.status("suspend"), app(a, "true")[0], h.status("resume"), app(a, "true")[0]), (200, 503, 200, 200), "a limit of 0 shuts too")
    equal((h.status("sync"), app(a, "true")[0]), (200, 200), "sync is 200, and nothing else changes")
    h.script("suspend", "10", f"echo $ASB_HOOK > {h.path('ran')}")
    h.status("suspend")
    equal(h.read("ran"), "suspend\n", "the image's scripts run")
    h.status("resume")
    h.stop()
    stop_agent(a)


def test_scripts():
    a = Agentd()
    h = Hooks(a.socket)
    out = h.path("out")
    nap = f"4321.{os.getpid()}"
    h.script("resume", "20-second", f"echo second >> {out}")
    h.script("resume", "10-first", f"echo first $ASB_HOOK $(cat $ASB_IDENTITY) >> {out}; exit 3")
    h.script("resume", "30-hangs", f"echo hangs >> {out}; sleep {nap} & sleep {nap}")
    h.script("resume", "40-last", f"echo last >> {out}")
    h.script("resume", ".hidden", f"echo hidden >> {out}")
    h.script("resume", "50-backup~", f"echo backup >> {out}")
    h.script("resume", "60-text", f"echo text >> {out}")
    os.chmod(h.path("etc/hooks.d/resume/60-text"), 0o644)
    st, _, took = h.call("resume")
    ok(st == 200 and took < 5, "200 within the platform's time, whatever the scripts do", (st, took))
    equal(h.read("out"), f"first resume {h.identity()}\nsecond\nhangs\nlast\n", "in order, with the new identity, and only programs")
    log = h.log()
    ok("10-first ended with status 3" in log and "30-hangs took too long" in log, "the log tells of failures", log)
    ok(until(lambda: not subprocess.run(["pgrep", "-f", "^sleep " + nap], capture_output=True).stdout), "its group was killed")
    equal(h.status("ready"), 200, "ready still answers")
    h.stop()
    stop_agent(a)


def test_terminate():
    a = Agentd()
    h = Hooks(a.socket)
    mark = h.path("flushed")
    box = {}
    t = threading.Thread(target=lambda: box.update(
        r=app(a, f"trap 'echo yes > {mark}; exit 0' TERM; while :; do sleep 0.05; done")))
    t.start()
    time.sleep(0.7)
    st, _, took = h.call("terminate")
    ok(st == 200 and took < 10, "terminate is 200", (st, took))
    t.join()
    equal(h.read("flushed"), "yes\n", "the workload got TERM and its time")
    h.stop()
    stop_agent(a)


for test in (test_ready, test_http, test_run, test_forms, test_race, test_resume, test_suspend, test_scripts, test_terminate):
    test()
done()
