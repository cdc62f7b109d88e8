#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""asb mcp as a peer: what it makes of hostile and odd input, both eras of the protocol, its lists. No sandbox is started."""
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ASB, TOP, ok, same, skip, until
import _mcp

_asb.need_asb()
MODERN = _mcp.MODERN
GOLDEN = os.path.join(TOP, "tests/vectors/mcp-tools.json")


def code(m):
    return m.get("error", {}).get("code")


def rss(s):
    with open(f"/proc/{s.p.pid}/status", encoding="ascii") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))


def hostile(home):
    with _mcp.Server(home, begin=False) as s:
        same(code(s.ask("tools/list")), -32600, "tools/list before initialize")
        same(code(s.ask("tools/call", {"name": "sandbox_list"})), -32600, "tools/call before initialize")
        same(s.ask("ping").get("result"), {}, "ping before initialize")
        same(code(s.ask("server/discover")), -32602, "discover without _meta")
        s.begin()
        for name, line, want, id_ in (
            ("no JSON", b"hello", -32700, None),
            ("half of it", b'{"jsonrpc":"2.0","id":7,"method":', -32700, None),
            ("a string", b'"tools/list"', -32600, None),
            ("a batch", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
            ("an empty batch", b"[]", -32600, None),
            ("no version", b'{"id":8,"method":"ping"}', -32600, 8),
            ("the wrong version", b'{"jsonrpc":"1.0","id":8,"method":"ping"}', -32600, 8),
            ("no method", b'{"jsonrpc":"2.0","id":9}', -32600, 9),
            ("a method that is a number", b'{"jsonrpc":"2.0","id":9,"method":4}', -32600, 9),
            ("an unknown method", b'{"jsonrpc":"2.0","id":"x","method":"tools/none"}', -32601, "x"),
            ("params that are a list", b'{"jsonrpc":"2.0","id":10,"method":"ping","params":[]}', -32602, 10),
            ("an id that is null", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
            ("an id that is an object", b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
            ("an id with a fraction", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
            ("invalid UTF-8", b'{"jsonrpc":"2.0","id":11,"method":"ping","params":{"a":"\xff"}}', -32700, 11),
            ("a NUL", b'{"jsonrpc":"2.0","id":12,"method":"ping\\u0000"}', -32700, 12),
            ("a thousand levels", b'{"jsonrpc":"2.0","id":13,"method":"ping","params":{"a":' + b"[" * 900 + b"]" * 900 + b"}}", -32700, 13),
            ("an unknown tool", b'{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"none"}}', -32602, 14),
            ("a tool without a name", b'{"jsonrpc":"2.0","id":15,"method":"tools/call"}', -32602, 15),
            ("arguments that are a list", b'{"jsonrpc":"2.0","id":16,"method":"tools/call","params":{"name":"sandbox_list","arguments":[]}}', -32602, 16),
            ("a foreign cursor", b'{"jsonrpc":"2.0","id":17,"method":"tools/list","params":{"cursor":"2"}}', -32602, 17),
            ("a resource that is not there", b'{"jsonrpc":"2.0","id":18,"method":"resources/read","params":{"uri":"agent-sandbox://none"}}', -32002, 18),
            ("resources/read without a uri", b'{"jsonrpc":"2.0","id":19,"method":"resources/read"}', -32602, 19),
            ("a log level that is none", b'{"jsonrpc":"2.0","id":20,"method":"logging/setLevel","params":{"level":"loud"}}', -32602, 20),
        ):
            s.raw(line + b"\n")
            m = s.take()
            same((code(m), m.get("id", "missing")), (want, id_), name)
        s.raw(b"\n\r\n  \n" + b'{"jsonrpc":"2.0","method":"notifications/none"}\n' + b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
        s.raw(b'{"jsonrpc":"2.0","id":"e","method":"ping"}\r\n')
        same(s.take(), {"jsonrpc": "2.0", "id": "e", "result": {}}, "blank lines, notifications and answers are not answered")
        s.raw(b'{"jsonrpc":"2.0","id":"pretty",\n"method":"ping"}\n')
        same([code(s.take()), code(s.take())], [-32700, -32700], "a message with a newline inside is two bad ones")
        n = {"name": "sandbox_logs_stream", "arguments": {"name": "none"}}
        call = json.dumps({"jsonrpc": "2.0", "id": "dup", "method": "tools/call", "params": n}).encode() + b"\n"
        s.raw(call + call)  # in one piece, so that the first is not over before the second is read
        same(sorted([code(s.take()) or 0, code(s.take()) or 0]), [-32600, 0], "an id that is in use")
        same(s.ask("tools/call", {"name": "sandbox_exec", "arguments": {"command": 5}})["result"],
             {"content": [{"type": "text", "text": "Error executing tool sandbox_exec: 2 validation errors for sandbox_execArguments"
                           "\nname\n  Field required\ncommand\n  Input should be a string"}], "isError": True}, "arguments that do not fit")
        before = rss(s)
        s.raw(b'{"jsonrpc":"2.0","id":21,"method":"ping","params":{"a":"')
        for _ in range(100):
            s.raw(b"x" * (1 << 20))
        s.raw(b'"}}\n')
        same(code(s.take()), -32600, "a line of 100 MB")
        same(s.ask("ping").get("result"), {}, "the server lives")
        ok(rss(s) - before < 4096, "none of it was kept", before, rss(s))
        same(s.bad, [], "nothing but messages on standard output")
        same(s.end(), 0, "it ends with its input")


def vague(schema, where):
    """The lists in SCHEMA whose items are not described: [] when all are."""
    bad = [where] if schema.get("type") in ("array", ["array", "null"]) and schema.get("items", {}) in ({}, {"type": "object"}) else []
    for name, part in {"[]": schema.get("items", {}), **schema.get("properties", {})}.items():
        bad += vague(part, f"{where}.{name}") if part else []
    return bad


def lists(home):
    with _mcp.Server(home) as s:
        same(sorted(s.info["result"]["capabilities"]), ["logging", "resources", "tools"], "capabilities")
        tools = s.ask("tools/list")["result"]["tools"]
        with open(os.path.join(TOP, "tests/vectors/mcp-input-schemas.json"), encoding="utf-8") as f:
            golden = json.load(f)
        same([t["name"] for t in tools][:35], list(golden), "the tools of the Python project, in its order")
        by_name = {t["name"]: t for t in tools}
        for name, want in golden.items():
            got = by_name[name]["inputSchema"]
            for p, v in got["properties"].items():
                v.pop("description", None)
                if p not in want["properties"] and "default" in v:
                    want["properties"][p] = v
            same(got, want, f"the input schema of {name}")
        with open(GOLDEN, encoding="utf-8") as f:
            golden = json.load(f)
        same(sorted(by_name), sorted(golden), "the tools are those of tests/vectors/mcp-tools.json")
        by_name = {t["name"]: {k: v for k, v in t.items() if k != "name"} for t in s.ask("tools/list")["result"]["tools"]}
        for name, want in golden.items():
            same(by_name.get(name), want, f"{name} is what it was: schemas, annotations, description")
        same([x for n, t in by_name.items() for x in vague(t["outputSchema"], n)], [], "each list in a result says what its items are")
        same([r["uri"].split("//")[1] for r in s.ask("resources/list")["result"]["resources"]],
             ["runtime", "infra", "sandboxes", "images", "policy", "schemas/sandbox-create"], "resources")
        for uri in ("infra", "sandboxes", "policy", "schemas/sandbox-create"):
            c = s.ask("resources/read", {"uri": "agent-sandbox://" + uri})["result"]["contents"][0]
            ok(c["mimeType"] == "text/plain" and json.loads(c["text"]), "resource " + uri, c)
        same(json.loads(s.ask("resources/read", {"uri": "agent-sandbox://policy"})["result"]["contents"][0]["text"])["host_paths"],
             [home.path], "the working directory is the list of folders")
        same(len(s.ask("resources/templates/list")["result"]["resourceTemplates"]), 1, "templates")
    for args, missing, there in ((["--read-only"], "sandbox_exec", "sandbox_list"), (["--no-network"], None, "sandbox_create")):
        with _mcp.Server(home, *args) as s:
            names = [t["name"] for t in s.ask("tools/list")["result"]["tools"]]
            ok(missing not in names and there in names, " ".join(args) + ": tools", names)
            if missing:
                same(code(s.ask("tools/call", {"name": missing, "arguments": {}})), -32602, "one that is not offered")
            else:
                same(s.error("sandbox_create", name="x", egress=True)["code"], "policy_denied", "no network")


def eras(home):
    for want, got in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
                      ("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25")):
        with _mcp.Server(home, begin=False) as s:
            m = s.ask("initialize", {"protocolVersion": want, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
            same(m["result"]["protocolVersion"], got, "initialize with " + want)
    with _mcp.Server(home, begin=False) as s:
        r = s.ask("server/discover", {"_meta": MODERN})["result"]
        ok("2026-07-28" in r["supportedVersions"] and r["resultType"] == "complete" and "ttlMs" in r, "server/discover", r)
        r = s.ask("tools/list", {"_meta": MODERN})["result"]
        same((r["resultType"], r["cacheScope"], r["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]),
             ("complete", "private", "agent-sandbox"), "a stateless tools/list")
        r = s.ask("tools/call", {"_meta": MODERN, "name": "sandbox_list", "arguments": {}})["result"]
        same((r["resultType"], r["structuredContent"]["ok"]), ("complete", True), "a stateless call")
        same(code(s.ask("resources/read", {"_meta": MODERN, "uri": "agent-sandbox://none"})), -32602, "a missing resource")
        same(code(s.ask("ping", {"_meta": MODERN})), -32601, "ping is not of that revision")
        m = s.ask("tools/list", {"_meta": {**MODERN, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}})
        same((code(m), m["error"]["data"]["requested"]), (-32022, "2030-01-01"), "a revision of the future")
        same(code(s.ask("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})), -32602,
             "without capabilities")
        same(code(s.ask("tools/list")), -32600, "the session that was never begun is still not")


def changes(home):
    state = os.path.join(home.path, ".agent_sandbox/state.json")

    def write(name):
        with open(state + ".tmp", "w", encoding="utf-8") as f:
            json.dump({"sandboxes": {name: {"name": name, "microvm_id": "microvm-1", "endpoint": None, "image_arn": None, "region": None}}}, f)
        os.rename(state + ".tmp", state)

    with _mcp.Server(home) as s:
        s.ask("resources/subscribe", {"uri": "agent-sandbox://sandboxes"})
        n = s.start("subscriptions/listen", {"_meta": MODERN, "notifications": {"resourcesListChanged": True, "toolsListChanged": True}})
        m = s.take()
        same((m["method"], m["params"]["notifications"]), ("notifications/subscriptions/acknowledged", {"resourcesListChanged": True}),
             "a subscription is acknowledged")
        write("one")
        got = [(m["method"].split("/")[-1], m["params"].get("uri"), (m["params"].get("_meta") or {}).get("io.modelcontextprotocol/subscriptionId"))
               for m in (s.take(), s.take(), s.take())]
        same(sorted(got, key=str), [("list_changed", None, n), ("list_changed", None, None), ("updated", "agent-sandbox://sandboxes", None)],
             "a change of another process")
        ok("agent-sandbox://sandboxes/one" in [r["uri"] for r in s.ask("resources/list")["result"]["resources"]], "it is a resource")
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}})
        s.ask("resources/unsubscribe", {"uri": "agent-sandbox://sandboxes"})
        write("two")
        same(s.take()["method"], "notifications/resources/list_changed", "only the list is told then")
        same(s.ask("ping").get("result"), {}, "and nothing else")
    os.unlink(state)


def unreadable(home):
    """A machine whose own record cannot be read: nobody knows what state it is in, or what network it has. And odd outputs of asb infra."""
    box = "local-0123456789abcdef"
    folder = os.path.join(home.path, ".agent_sandbox")
    os.makedirs(os.path.join(folder, "local/vms", box), mode=0o700)
    with open(os.path.join(folder, "local/vms", box, "vm.json"), "w", encoding="ascii") as f:
        f.write("{")
    with open(os.path.join(folder, "state.json"), "w", encoding="utf-8") as f:
        json.dump({"sandboxes": {x: {"name": x, "microvm_id": i, "endpoint": None, "image_arn": None, "region": None}
                                 for x, i in (("odd", box), ("gone", "local-fedcba9876543210"))}}, f)
    with _mcp.Server(home, "--read-only") as s:
        same([s.error(t, name="odd", **a)["code"] for t, a in (("sandbox_fs_list", {}), ("sandbox_metrics", {}), ("sandbox_exec_list", {}))],
             ["policy_denied"] * 3, "a read-only server resumes nothing that it cannot read the state of")
        ok(s.error("sandbox_fs_list", name="gone")["code"] != "policy_denied", "one that is not there is not there")
    with open(os.path.join(folder, "infra-state.json"), "w", encoding="utf-8") as f:
        json.dump({"stacks": {"p/dev": {"outputs": {"build_bucket": 7}}}}, f)
    with _mcp.Server(home) as s:
        e = s.error("infra_outputs")
        ok(e["code"] == "internal" and "outputSchema of infra_outputs" in e["message"], "what does not fit the outputSchema is not answered", e)
    with _mcp.Server(home, "--no-network") as s:
        same(s.error("sandbox_branch", name="odd", names=["copy"])["code"], "policy_denied", "--no-network copies nothing that it cannot read the network of")
    shutil.rmtree(folder)


def without_a_descriptor(s):
    """From now on S gets no descriptor beyond those that it has."""
    have = {int(x) for x in os.listdir(f"/proc/{s.p.pid}/fd")}
    limit = min(set(range(len(have) + 1)) - have)
    resource.prlimit(s.p.pid, resource.RLIMIT_NOFILE, (limit, limit))


def unwatched(home):
    """The state cannot be watched: that is about no request, so a client of the stateless revision is not told."""
    with _mcp.Server(home, begin=False) as s:
        s.ask("initialize", {"protocolVersion": _mcp.REVISION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        without_a_descriptor(s)
        s.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        s.ask("ping")
        same([(m["level"], m["logger"]) for m in s.logs()], [("warning", "server")], "changes that will not be told: a session is warned")
    with _mcp.Server(home, begin=False) as s:
        s.ask("server/discover", {"_meta": MODERN})
        without_a_descriptor(s)
        s.start("subscriptions/listen", {"_meta": MODERN, "notifications": {"resourcesListChanged": True}})
        same(s.take()["method"], "notifications/subscriptions/acknowledged", "a stateless subscription")
        s.ask("server/discover", {"_meta": MODERN})
        same(s.logs(), [], "gets no log message, for it has set no level")


def levels(home):
    def heard(s):
        return [(m["level"], m["logger"]) for m in s.logs()]

    debug = [("debug", "sandbox_list")]
    with _mcp.Server(home) as s:
        s.data("sandbox_list")
        same(heard(s), [], "logging: no level was set, and all went well")
        s.ask("logging/setLevel", {"level": "debug"})
        s.data("sandbox_list")
        same(heard(s), debug, "debug: how long a call took")
        for level in ("info", "emergency"):
            s.ask("logging/setLevel", {"level": level})
            s.data("sandbox_list")
            same(heard(s), [], f"{level}: nothing of debug")
        s.ask("logging/setLevel", {"level": "debug"})
        same(code(s.ask("logging/setLevel", {"level": "loud"})), -32602, "a level that is none")
        s.data("sandbox_list")
        same(heard(s), debug, "changes nothing")
        for more, want in (({}, []), ({"io.modelcontextprotocol/logLevel": "debug"}, debug), ({"io.modelcontextprotocol/logLevel": "info"}, [])):
            s.ask("tools/call", {"_meta": {**MODERN, **more}, "name": "sandbox_list", "arguments": {}})
            same(heard(s), want, f"a stateless call with {more or 'no level'}, whatever the session's is")
        for bad in ("loud", 7):
            same(code(s.ask("tools/list", {"_meta": {**MODERN, "io.modelcontextprotocol/logLevel": bad}})), -32602, f"the level {bad} of a call")
        s.error("sandbox_remove", name="nonesuch")
        same([m["data"]["sandbox"] for m in s.logs()], ["nonesuch"], "a message says which sandbox")
        for n in [s.start("tools/call", {"name": "sandbox_list", "arguments": {}}) for _ in range(200)]:
            s.wait(n)
        time.sleep(0.3)
        s.data("sandbox_list")
        got = s.logs()
        told = [m["data"]["message"] for m in got if m["logger"] == "server"]
        ok(30 < len(got) < 150 and any("left out" in x for x in told), "many at once are cut, and that is told", len(got), told)
        same(s.bad, [], "nothing but messages on standard output")


def sdk_levels(home):
    why = _mcp.official()
    if why:
        skip("log messages in the official clients", why)
        return
    r = _mcp.node(home, "_mcp_logs.mjs", ASB)
    want = [[], [["debug", "sandbox_list"]]]
    same(json.loads(r.stdout or "{}"), {"v1": want, "v2": want}, "log messages in the official clients of both eras")


def dies(home):
    """A worker that is killed while it waits for the lock of the names."""
    os.makedirs(os.path.join(home.path, ".agent_sandbox"), mode=0o700, exist_ok=True)
    with open(os.path.join(home.path, ".agent_sandbox/.lock"), "w", encoding="ascii") as lock, _mcp.Server(home) as s:
        fcntl.flock(lock, fcntl.LOCK_EX)
        n = s.start("tools/call", {"name": "sandbox_create", "arguments": {"name": "x"}})
        os.kill(until(s.children)[0], signal.SIGKILL)
        same(code(s.wait(n)), -32603, "a worker that dies is answered for")
        m = s.logs()
        same([(x["level"], x["logger"]) for x in m], [("error", "sandbox_create")], "and its death is logged, without a level that was set")
        ok("signal 9" in m[0]["data"]["message"], "with the reason", m)


def ends(home):
    # Requests, and the end of the input at once: quick ones are answered.
    text = "".join(json.dumps(x) + "\n" for x in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "sandbox_list", "arguments": {}}}))
    r = subprocess.run([ASB, "mcp"], input=text.rstrip("\n").encode(), env=home.env, cwd=home.path, capture_output=True, timeout=30, check=False)
    same((r.returncode, [json.loads(x)["id"] for x in r.stdout.splitlines()]), (0, [1, 2]), "the last line needs no newline")
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        s = _mcp.Server(home)
        s.p.send_signal(sig)
        same(s.p.wait(20), 0, f"it ends by {sig.name}")
        s.end()
    # A client that does not read: the server must not grow without bound, and goes on when it reads again.
    p = subprocess.Popen([ASB, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home.env, cwd=home.path)
    p.stdin.write(text.splitlines()[0].encode() + b"\n")
    p.stdin.flush()
    os.set_blocking(p.stdin.fileno(), False)
    sent = 1
    idle = time.monotonic()
    rest = b""
    while time.monotonic() - idle < 2 and sent < 20000:
        if not rest:
            sent += 1
            rest = json.dumps({"jsonrpc": "2.0", "id": sent, "method": "tools/list"}).encode() + b"\n"
        try:
            rest = rest[os.write(p.stdin.fileno(), rest):]
            idle = time.monotonic()
        except BlockingIOError:
            time.sleep(0.05)
    sent -= rest != b""
    with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
        kib = next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))
    ok(sent < 20000 and kib < 200000, "a client that does not read is not read from", sent, kib)
    os.set_blocking(p.stdin.fileno(), True)
    got = 0
    while got < sent and p.stdout.readline():
        got += 1
    same(got, sent, "and gets all answers when it reads")
    p.stdin.close()
    same(p.wait(20), 0, "then it ends")
    p.stdout.close()


def conformance(home):
    """The official package's scenarios, less those that want the tools of its own example server."""
    scenarios = ("server-initialize", "ping", "tools-list", "logging-set-level", "resources-list", "resources-subscribe",
                 "resources-unsubscribe")
    why = _mcp.official()
    out = {}
    if not why:
        r = _mcp.node(home, "_mcp_conformance.mjs", ASB, os.path.join(_mcp.NPM, "@modelcontextprotocol/conformance/dist/index.js"),
                      *scenarios, limit=280)
        out = json.loads(r.stdout or "{}")
    for name in scenarios:
        if why:
            skip("conformance: " + name, why)
        else:
            ok(out.get(name, {}).get("code") == 0, "conformance: " + name, out.get(name, {}).get("text", r.stderr))


def write_golden(home):
    with _mcp.Server(home) as s, open(GOLDEN, "w", encoding="utf-8") as f:
        json.dump({t.pop("name"): t for t in s.ask("tools/list")["result"]["tools"]}, f, indent=1, ensure_ascii=False)
        f.write("\n")


if sys.argv[1:] == ["--golden"]:  # writes down what the tools are now
    with _asb.Home() as home:
        write_golden(home)
    sys.exit(0)
with _asb.Home() as home:
    hostile(home)
    lists(home)
    eras(home)
    changes(home)
    unreadable(home)
    unwatched(home)
    levels(home)
    sdk_levels(home)
    dies(home)
    ends(home)
    conformance(home)
_asb.done()
