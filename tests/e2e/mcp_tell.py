#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""What asb mcp tells while it works: progress, and log messages of what tools did. In one sandbox."""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ASB, ok, same, skip, until
import _mcp

_asb.need_vm()
SECRET = "s3cret-7f1c"


def call(s, tool, /, token="p", **args):
    """A call with a progress token: (envelope, its progress notifications). None may come after the answer."""
    s.notes = [m for m in s.notes if m["method"] != "notifications/progress"]
    n = s.start("tools/call", {"name": tool, "arguments": args, **({"_meta": {"progressToken": token}} if token is not None else {})})
    envelope = s.wait(n)["result"]["structuredContent"]
    s.ask("ping")
    got = [m["params"] for m in s.notes if m["method"] == "notifications/progress"]
    if token is not None:
        values = [p["progress"] for p in got]
        ok(all(p["progressToken"] == token for p in got) and values == sorted(set(values)), f"{tool}: progress rises, under its token", got)
    return envelope, got


def heard(s):
    return [(m["level"], m["logger"], m["data"].get("sandbox")) for m in s.logs()]


def commands(s):
    loud = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.5; done"
    began = time.monotonic()
    r, got = call(s, "sandbox_exec", token=7, name="box", command="sh", args=["-c", loud])
    took = time.monotonic() - began
    same(r["data"]["exit_code"], 0, "a command of six seconds")
    ok(4 <= len(got) <= 4 * took + 2 and "of output" in got[-1]["message"] and got[-1]["progress"] <= took, "tells time and output, at most four times a second", got)
    began = time.monotonic()
    r, got = call(s, "sandbox_shell", name="box", command="sleep 7")
    ok(2 <= len(got) <= (time.monotonic() - began) / 2 + 1, "a silent one tells now and then", got)
    same(call(s, "sandbox_exec", name="box", command="sleep", token=None, args=["3"])[1], [], "without a token nothing is told")
    same(call(s, "sandbox_exec", name="box", command="true", token="é")[0]["ok"], True, "a token is any text")
    n = s.data("sandbox_exec_start", name="box", command="sleep", args=["600"])["session"]
    ok(len(call(s, "sandbox_exec_poll", name="box", session=n, wait_ms=5000)[1]) >= 1, "a poll that waits")
    s.data("sandbox_exec_close", name="box", session=n)
    ok(len(call(s, "sandbox_fs_watch", name="box", path="/work", timeout_ms=5000)[1]) >= 1, "a watch that waits")
    ok(len(call(s, "sandbox_logs_stream", name="box", cursor="9999-01-01T00:00:00.000000Z/1", follow_timeout_ms=5000)[1]) >= 1, "a log that is waited for")
    ok(len(call(s, "sandbox_wait", name="box", target="suspended", timeout=3)[1]) >= 3, "a wait")
    got = call(s, "sandbox_metrics_stream", name="box", samples=3, interval_ms=1000)[1]
    same([p["message"] for p in got if "message" in p], [f"sample {i} of 3" for i in (1, 2, 3)], "metrics tell each sample")


def supervisors(home):
    """Processes that have a machine of this HOME."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[1:2] == [b"__supervise"] and os.readlink(f"/proc/{pid}/cwd").startswith(home.path):
                found.append(int(pid))
        except OSError:
            pass
    return found


def begun(got, word):
    return [p.get("message") for p in got[:1]] == [word]


def waits(s, home):
    """What the supervisor does in one go, which it takes its time for: it stands still until a sign of life has come."""
    s.notes = []
    pids = supervisors(home)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    n = s.start("tools/call", {"name": "sandbox_stop", "arguments": {"name": "box"}, "_meta": {"progressToken": "w"}})
    came = s.heard(lambda m: m["method"] == "notifications/progress" and "message" not in m["params"])
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    same((len(pids), came, s.wait(n)["result"]["structuredContent"]["ok"]), (1, True, True), "a stop is told of while it lasts")
    got = [m["params"] for m in s.notes if m["method"] == "notifications/progress"]
    values = [p["progress"] for p in got]
    ok(begun(got, "suspending") and values == sorted(set(values)), "from its begin on, and progress rises", got)
    s.data("sandbox_start", name="box")


def copies(s, home):
    size = 24 << 20
    with open(os.path.join(home.path, "big"), "wb") as f:
        f.write(os.urandom(size))
    for tool, args in (("sandbox_fs_copy_from_host", {"host_path": "big", "dest": "big"}), ("sandbox_fs_upload", {"host_path": "big", "dest": "big2"}),
                       ("sandbox_fs_copy_to_host", {"src": "big", "host_path": "out"}), ("sandbox_fs_download", {"src": "big2", "host_path": "out2"})):
        r, got = call(s, tool, name="box", **args)
        ok(r["ok"] and all(0 < p["progress"] <= size * 1.1 for p in got), f"{tool}: bytes", r, got)
        if "from_host" in tool:
            same({p["total"] for p in got} - {size}, set(), "of how many, where that is known")


def messages(s):
    s.logs()
    s.ask("logging/setLevel", {"level": "info"})
    s.data("sandbox_exec", name="box", command="sh", args=["-c", "yes | head -c 2000000", SECRET], env={"A": SECRET})
    m = s.logs()
    same([(x["level"], x["logger"]) for x in m], [("warning", "sandbox_exec")], "a text that is cut")
    ok("2000000 bytes" in m[0]["data"]["message"] and SECRET not in json.dumps(m), "tells how much, and no command", m)
    s.data("sandbox_exec", name="box", command="sleep", args=["600"], timeout=1)
    same(heard(s), [("warning", "sandbox_exec", "box")], "a timeout")
    for tool, word, args in (("snapshot_create", "copying", {"name": "box", "snapshot": "kept"}), ("sandbox_branch", "copying", {"name": "box", "names": ["one"]}),
                             ("sandbox_remove", "removing", {"name": "one"})):
        r, got = call(s, tool, **args)
        ok(r["ok"] and begun(got, word), f"{tool} tells that it begins", r, got)
    same(heard(s), [("info", "snapshot_create", "box"), ("info", "sandbox_branch", "box"), ("info", "sandbox_remove", "one")], "what is made and removed")
    s.data("sandbox_stop", name="box")
    s.data("sandbox_exec", name="box", command="true")
    s.data("sandbox_stop", name="box")
    s.data("sandbox_start", name="box")
    same(heard(s), [("info", "sandbox_stop", "box"), ("notice", "sandbox_exec", "box"), ("info", "sandbox_stop", "box"), ("info", "sandbox_start", "box")],
         "stopped, resumed for a call, and by hand")
    r, got = call(s, "snapshot_restore", snapshot="kept", name="two")
    d = r["data"]
    ok(begun(got, "restoring") and begun(call(s, "snapshot_remove", snapshot="kept")[1], "removing"), "snapshots tell it too", got)
    m = s.logs()
    same([(x["level"], x["logger"]) for x in m], [("info", "snapshot_restore"), ("info", "snapshot_remove")], "snapshots")
    ok(d["microvm_id"] in m[0]["data"]["message"], "with the machine's id", m)
    s.data("sandbox_remove", name="two")
    port = s.data("sandbox_forward_start", name="box", port=8080)["local_port"]
    s.data("sandbox_forward_stop", local_port=port)
    same([x for x in heard(s) if "forward" in x[1]], [("info", "sandbox_forward_start", "box"), ("info", "sandbox_forward_stop", None)], "forwards")
    s.data("sandbox_forward_start", name="box", port=8080)
    os.kill(s.children()[0], 9)
    s.heard(lambda m: m["params"].get("level") == "warning")
    m = s.logs()
    ok(m and "signal 9" in m[-1]["data"]["message"], "a forward that ends by itself", m)
    s.wait(s.start("tools/call", {"_meta": {**_mcp.MODERN, "io.modelcontextprotocol/logLevel": "debug"}, "name": "sandbox_forward_start",
                                  "arguments": {"name": "box", "port": 8080}}))
    ok("sandbox_forward_start" in [x["logger"] for x in s.logs()], "a stateless call has log messages when it asks for them")
    os.kill(s.children()[0], 9)
    ok(until(lambda: not s.children()), "its forward ends")
    s.ask("ping")
    same(s.logs(), [], "and none comes after its answer")


def official(home):
    why = _mcp.official()
    if why:
        skip("progress in the official client", why)
        return
    r = _mcp.node(home, "_mcp_progress.mjs", ASB, "box")
    out = json.loads(r.stdout or "{}")
    ok(out.get("exit_code") == 0 and out.get("told", 0) >= 2, "the official client waits longer than its limit, because progress comes", out, r.stderr)


with _asb.Home() as home:
    with _mcp.Server(home) as s:
        s.ask("logging/setLevel", {"level": "info"})
        r, got = call(s, "sandbox_create", name="box", memory=256)
        ok(r["ok"] and any(p.get("message") == "ready" for p in got), "a start tells its steps", r, got)
        m = s.logs()
        same((m[0]["level"], m[0]["data"]["sandbox"], r["data"]["microvm_id"] in m[0]["data"]["message"]), ("info", "box", True), "and is logged")
        accel = json.loads(home.call("inspect", "box").stdout).get("accel")
        same([x["level"] for x in m[1:]], ["warning"] if accel == "tcg" else [], "emulation is told")
        commands(s)
        copies(s, home)
        waits(s, home)
        messages(s)
        same(s.bad, [], "nothing but messages on standard output")
    official(home)
_asb.done()
