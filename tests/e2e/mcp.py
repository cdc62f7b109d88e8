#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""asb mcp in a real sandbox: its tools, the official clients, cancellation, what it leaves behind."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ASB, ok, same, skip, until
import _mcp

_asb.need_vm()


def processes(home, name, *words):
    """Whether a process with WORDS in its command line runs in the sandbox."""
    script = 'for f in /proc/[0-9]*/cmdline; do tr "\\0" " " <$f 2>/dev/null; echo; done'
    text = home.call("exec", "-T", name, "--", "sh", "-c", script).stdout.decode()
    return [x for x in text.splitlines() if all(w in x for w in words) and "cmdline" not in x]


def gone(home, name, *words):
    return until(lambda: not processes(home, name, *words), 30, 0.3)


def life(home):
    with _mcp.Server(home) as s:
        same(s.info["result"]["protocolVersion"], _mcp.REVISION, "the revision that was asked for")
        made = s.data("sandbox_create", name="box", memory=256)
        ok(made and made["name"] == "box" and made["state"] == "running", "sandbox_create", made)
        same([x["name"] for x in s.data("sandbox_list")["sandboxes"]], ["box"], "sandbox_list")
        same(s.data("sandbox_status", name="box")["status"], "RUNNING", "sandbox_status of one")
        same(s.data("sandbox_inspect", name="box")["name"], "box", "sandbox_inspect")
        same(s.error("sandbox_create", name="box")["code"], "exists", "a name that is taken")
        same(s.error("sandbox_exec", name="none", command="true"),
             {"code": "SandboxError", "message": "no sandbox named 'none'"}, "an unknown sandbox")
        r = s.data("sandbox_exec", name="box", command="sh", args=["-c", "pwd; echo $A >&2; exit 7"], env={"A": "1 '2"})
        same((r["exit_code"], r["success"], r["stdout"], r["stderr"]["text"]),
             (7, False, {"text": "/work\n", "truncated": False}, "1 '2\n"), "sandbox_exec: argv, working directory, env")
        same(s.data("sandbox_exec", name="box", command="none")["exit_code"], 127, "a command that is not there")
        same(s.data("sandbox_shell", name="box", command="echo $((6*7)) $0")["stdout"]["text"], "42 bash\n", "sandbox_shell")
        e = s.error("sandbox_exec", name="box", command="sh", args=["-c", "echo before; sleep 1000"], timeout=1)
        same((e["code"], e["stdout"]["text"]), ("timeout", "before\n"), "a timeout has the output so far")
        same(s.bad, [], "nothing but messages on standard output")


def cancel(home):
    with _mcp.Server(home) as s:
        n = s.start("tools/call", {"name": "sandbox_exec", "arguments": {
            "name": "box", "command": "sh", "args": ["-c", "trap '' TERM HUP; setsid sleep 7777 & sleep 7778"]}})
        ok(until(lambda: processes(home, "box", "sleep 7777"), 30, 0.3), "the call runs")
        same(s.data("sandbox_exec", name="box", command="true")["exit_code"], 0, "another call meanwhile")
        for what in (n, n, "unknown"):
            s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": what}})
        ok(gone(home, "box", "sleep 777"), "cancelling ends the tree, what ignores signals too",
           processes(home, "box", "sleep 777"))
        same(s.data("sandbox_list")["count"], 1, "the server lives")
        ok(n not in s.answers, "a cancelled call is not answered")


def vanish(home):
    """A client that is gone while a throw-away sandbox starts, or works, and one whose server is killed."""
    for name, wait, end in (("starts", 0.3, "close"), ("works", None, "close"), ("works, server killed", None, "kill")):
        s = _mcp.Server(home)
        s.start("tools/call", {"name": "sandbox_run", "arguments": {"command": "sleep 5555"}, "_meta": {"progressToken": "t"}})
        if wait:
            time.sleep(wait)
        else:
            ok(s.heard(lambda m: m["params"].get("message") == "ready"), "it is ready")
        if end == "kill":
            s.p.kill()
        status = s.end()
        ok(status == 0 or end == "kill", f"sandbox_run {name}: the server has ended", status)
        until(lambda: len(home.left()) == 2, 40, 0.3)  # the folder and the name of box
        left = home.call("ls", "-q").stdout.decode().split()
        same(left, ["box"], f"sandbox_run {name}: nothing is left")


def official(home):
    why = _mcp.official()
    if why:
        for name in ("SDK 1", "SDK 2", "inspector"):
            skip(name, why)
        return
    r = _mcp.node(home, "_mcp_v1.mjs", ASB, "box")
    ok(r.returncode == 0, "@modelcontextprotocol/sdk", r.stderr)
    out = json.loads(r.stdout or "{}")
    same(out.get("server"), "agent-sandbox", "its name")
    ok({"sandbox_run", "sandbox_exec"} <= set(out.get("tools", [])), "its tools", out.get("tools"))
    same(out.get("exec", {}).get("data", {}).get("stdout", {}).get("text"), "héllo\n", "an exec")
    same(out.get("run", {}).get("data", {}).get("exit_code"), 3, "a run")
    ok("ready" in out.get("stages", []), "progress", out.get("stages"))
    same((out.get("missing", {}).get("isError"), out.get("unknown")), (True, -32602), "a missing argument, an unknown tool")
    ok("AbortError" in out.get("aborted", "") and gone(home, "box", "sleep 4321"), "an abort", out.get("aborted"))
    r = _mcp.node(home, "_mcp_v2.mjs", ASB, "box")
    out = json.loads(r.stdout or "{}")
    same((r.returncode, out.get("revision"), out.get("exec", {}).get("data", {}).get("stdout", {}).get("text")),
         (0, "2026-07-28", "héllo\n"), "@modelcontextprotocol/client, stateless")
    r = subprocess.run([_mcp.NODE, os.path.join(_mcp.NPM, ".bin/mcp-inspector"), "--cli", ASB, "mcp", "--method", "tools/call",
                        "--tool-name", "sandbox_exec", "--tool-arg", "name=box", "--tool-arg", "command=hostname"],
                       env=home.env, cwd=home.path, capture_output=True, text=True, timeout=120, check=False)
    ok(r.returncode == 0 and '"exit_code":0' in r.stdout.replace(" ", ""), "@modelcontextprotocol/inspector --cli",
       r.stdout, r.stderr)


with _asb.Home() as home:
    life(home)
    cancel(home)
    official(home)
    vanish(home)
    with _mcp.Server(home) as s:
        same(s.data("sandbox_stop", name="box"), {"name": "box", "state": "suspended"}, "sandbox_stop")
        same(s.data("sandbox_start", name="box")["state"], "running", "sandbox_start")
        same(s.data("sandbox_wait", name="box", target="running")["reached_target"], True, "sandbox_wait")
        same(s.error("sandbox_wait", name="box", target="suspended", timeout=0.5)["state"], "running", "a wait in vain")
        same([x["name"] for x in s.data("sandbox_branch", name="box", names=["copy"])["sandboxes"]], ["copy"], "sandbox_branch")
        same(s.data("sandbox_remove", name="copy"), {"name": "copy", "removed": True}, "sandbox_remove")
        same(s.data("sandbox_remove", name="box")["removed"], True, "the other one too")
        same(s.error("sandbox_remove", name="box")["code"], "not_found", "once more")
    same(home.left(), [], "nothing is left")
_asb.done()
