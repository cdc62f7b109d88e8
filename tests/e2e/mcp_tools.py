#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""asb mcp: files, sessions, logs, metrics, policy and caps, in one sandbox."""
import base64
import json
import os
import shutil
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ok, same, skip, until
import _mcp

_asb.need_vm()
WORK = "/work"  # where relative paths begin in a sandbox


def files(s):
    def call(tool, **args):
        return s.tool(tool, name="box", **args)

    same(call("sandbox_fs_write", path="a/b.txt", content="héllo\n")["data"], {"path": f"{WORK}/a/b.txt", "bytes_written": 7}, "fs_write")
    same(call("sandbox_fs_read", path=f"{WORK}/a/b.txt").get("data", call("sandbox_fs_read", path=f"{WORK}/a/b.txt")),
         {"path": f"{WORK}/a/b.txt", "content": {"text": "héllo\n", "truncated": False}, "encoding": "text", "size": 7}, "fs_read")
    same(call("sandbox_fs_read", path="a/b.txt", encoding="base64")["data"]["content"]["text"],
         base64.b64encode("héllo\n".encode()).decode(), "fs_read as base64")
    raw = bytes(range(256))
    same(call("sandbox_fs_write", path="raw", content=base64.b64encode(raw).decode(), encoding="base64")["data"]["bytes_written"], 256,
         "fs_write of bytes")
    d = call("sandbox_fs_read", path="raw")["data"]
    same((d["encoding"], base64.b64decode(d["content"]["text"])), ("base64", raw), "what is no text comes as base64")
    same(call("sandbox_fs_write", path="raw", content="%%%=x", encoding="base64")["error"]["code"], "ValueError", "bad base64")
    same(call("sandbox_fs_read", path="none")["error"]["code"], "AgentError", "a missing file")
    ok(call("sandbox_fs_read", path="/proc/uptime")["data"]["size"] > 5, "a file without a size")
    same(call("sandbox_fs_mkdir", path="d/e")["data"], {"path": f"{WORK}/d/e", "created": True}, "fs_mkdir")
    same(call("sandbox_fs_mkdir", path="d/e")["ok"], True, "once more")
    e = call("sandbox_fs_list")["data"]["entries"]
    same([(x["name"], x["is_dir"], x["mode"]) for x in e], [("a", True, "0o40755"), ("d", True, "0o40755"), ("raw", False, "0o100644")], "fs_list")
    same(call("sandbox_fs_list", path="none")["error"]["code"], "fs_error", "a directory that is not there")
    s.data("sandbox_exec", name="box", command="ln", args=["-s", "a", "link"])
    st = call("sandbox_fs_stat", path="link")["data"]
    same((st["is_symlink"], st["is_dir"], st["is_file"], st["uid"]), (True, True, False, 0), "fs_stat of a link to a directory")
    same(call("sandbox_fs_stat", path="raw")["data"]["size"], 256, "fs_stat")
    same([call("sandbox_fs_exists", path=p)["data"]["exists"] for p in ("raw", "none", "raw/x")], [True, False, False], "fs_exists")
    same(call("sandbox_fs_copy", src="a", dst="d")["data"], {"src": f"{WORK}/a", "dst": f"{WORK}/d"}, "fs_copy into a directory")
    same(call("sandbox_fs_read", path="d/a/b.txt")["data"]["content"]["text"], "héllo\n", "as cp -r does")
    same(call("sandbox_fs_rename", src="raw", dst="d/raw2")["ok"], True, "fs_rename")
    same(call("sandbox_fs_exists", path="d/raw2")["data"]["exists"], True, "it has its new name")
    same(call("sandbox_fs_remove", path="d")["error"]["code"], "fs_error", "fs_remove of a directory wants recursive")
    same(call("sandbox_fs_remove", path="d", recursive=True)["data"]["removed"], True, "fs_remove recursive")
    same(call("sandbox_fs_remove", path="d", recursive=True)["ok"], True, "what is missing is no error")


def parts(home):
    return [x for x in os.listdir(home.path) if x.startswith("big.out.")]


def host(s, home):
    with open(os.path.join(home.path, "in.txt"), "wb") as f:
        f.write(b"from here\0")
    same(s.data("sandbox_fs_copy_from_host", name="box", host_path="in.txt", dest="in.txt")["bytes_written"], 10, "copy_from_host")
    same(s.data("sandbox_fs_copy_to_host", name="box", src="in.txt", host_path="new/out.txt")["bytes_written"], 10, "copy_to_host")
    with open(os.path.join(home.path, "new/out.txt"), "rb") as f:
        same(f.read(), b"from here\0", "it is the same")
    os.symlink("/etc", os.path.join(home.path, "etc"))
    os.symlink("/tmp/asb-none", os.path.join(home.path, "dangling"))
    for path in ("/etc/hostname", "../x", "etc/hostname", home.path + "/../../etc/hostname", "new/../../x"):
        e = s.error("sandbox_fs_copy_from_host", name="box", host_path=path, dest="x")
        ok(e["code"] in ("policy_denied", "not_found"), f"from {path}", e)
    for path in ("/etc/asb-test", "etc/asb-test", "dangling", "../asb-test"):
        e = s.error("sandbox_fs_copy_to_host", name="box", src="in.txt", host_path=path)
        ok(e["code"] in ("policy_denied", "not_found"), f"to {path}", e)
    ok(not os.path.exists("/etc/asb-test") and not os.path.exists("/tmp/asb-none"), "nothing was written there")
    same(s.error("sandbox_fs_copy_from_host", name="box", host_path="none", dest="x")["code"], "not_found", "a file that is not there")
    s.data("sandbox_exec", name="box", command="truncate", args=["-s", "4G", "big"])
    n = s.start("tools/call", {"name": "sandbox_fs_copy_to_host", "arguments": {"name": "box", "src": "big", "host_path": "big.out"}})
    ok(until(lambda: parts(home), 60, 0.02), "a copy to the host is under way")
    s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}})
    same((until(lambda: not parts(home), 60), os.path.exists(os.path.join(home.path, "big.out"))), (True, False), "cancelled, it leaves no part")
    os.makedirs(os.path.join(home.path, "tree/sub"))
    with open(os.path.join(home.path, "tree/sub/f"), "w", encoding="utf-8") as f:
        f.write("deep")
    same(s.data("sandbox_fs_upload", name="box", host_path="tree", dest="up")["members"], 3, "fs_upload of a directory")
    same(s.data("sandbox_fs_read", name="box", path="up/sub/f")["content"]["text"], "deep", "it is there")
    same(s.data("sandbox_fs_download", name="box", src="up", host_path="down")["members"], 3, "fs_download")
    with open(os.path.join(home.path, "down/sub/f"), encoding="utf-8") as f:
        same(f.read(), "deep", "and back")
    same(s.error("sandbox_fs_download", name="box", src="up", host_path="etc/x")["code"], "policy_denied", "download elsewhere")


def sessions(s):
    def call(tool, **args):
        return s.tool("sandbox_exec_" + tool, name="box", **args)

    r = call("start", command="sh", args=["-c", "echo up; while read x; do echo got $x; done; echo end >&2; exit 5"], stdin=True)
    n = r["data"]["session"]
    p = call("poll", session=n, wait_ms=10000)["data"]
    same((p["state"], p["stdout"]["text"], p["next_offset"], p["more"]), ("running", "up\n", 3, False), "start and poll")
    same(call("write", session=n, data="one\n")["data"]["bytes_written"], 4, "write")
    p = call("poll", session=n, offset=3, wait_ms=10000)["data"]
    same((p["stdout"]["text"], p["offset"]), ("got one\n", 3), "poll from an offset")
    ok(n in [x["id"] for x in call("list")["data"]["sessions"]], "list")
    with _mcp.Server(s.home) as other:
        same(other.data("sandbox_exec_poll", name="box", session=n)["stdout"]["text"], "up\ngot one\n", "another server sees it")
    call("write", session=n, data="two\n", eof=True)
    end = {}
    limit = time.monotonic() + 60
    while end.get("state") != "exited" and time.monotonic() < limit:
        end = call("poll", session=n, offset=11, wait_ms=2000)["data"]
    same((end["exit_code"], end["signal"], end["stdout"]["text"], end["stderr"]["text"]), (5, None, "got two\n", "end\n"), "its end")
    same(call("close", session=n)["data"]["closed"], True, "close")
    same(call("poll", session=n)["error"]["code"], "not_found", "poll of a closed one")
    n = call("start", command="sh", args=["-c", "setsid sleep 8888 & exec sleep 8889"])["data"]["session"]
    same(call("signal", session=n, signal="KILL", to="leader")["ok"], True, "signal")
    p = call("poll", session=n, wait_ms=20000)["data"]
    same((p["state"], p["signal"]), ("exited", 9), "it has ended by it")
    call("close", session=n)
    same(call("start", command="no-such-thing")["error"]["code"], "not_found", "a command that is not there")
    for bad in ("", "../x", "a/b", "x" * 80):
        same(call("poll", session=bad)["error"]["code"], "not_found", f"session {bad[:9]!r}")
    n = call("start", command="sh", args=["-c", r"printf 'a\303'; sleep 2; printf '\251b'; sleep 600"])["data"]["session"]
    p = call("poll", session=n, wait_ms=10000)["data"]
    same((p["stdout"]["text"], p["next_offset"]), ("a", 1), "half a character waits for its other half")
    time.sleep(3)
    same(call("poll", session=n, offset=1)["data"]["stdout"]["text"], "éb", "and comes whole")
    call("close", session=n)


def caps(home):
    with _mcp.Server(home, env={"AGENT_SANDBOX_MCP_MAX_OUTPUT_BYTES": "10"}) as s:
        r = s.data("sandbox_exec", name="box", command="sh", args=["-c", "printf 'ééééééé'; printf 1234567890 >&2"])
        same(r["stdout"], {"text": "ééééé", "truncated": True, "total_bytes": 14, "returned_bytes": 10}, "output is cut")
        same(r["stderr"], {"text": "1234567890", "truncated": False}, "to the last byte")
        same(s.data("sandbox_exec", name="box", command="printf", args=["aéééééé"])["stdout"],
             {"text": "aéééé", "truncated": True, "total_bytes": 13, "returned_bytes": 9}, "never half a character")
        s.data("sandbox_fs_write", name="box", path="long", content="aéééééé")
        text, offset = "", 0
        while offset is not None:
            d = s.data("sandbox_fs_read", name="box", path="long", offset=offset)
            text, offset = text + d["content"]["text"], d.get("next_offset")
        same(text, "aéééééé", "a file in pieces")
        raw, offset = b"", 0
        s.data("sandbox_fs_write", name="box", path="long", content=base64.b64encode(bytes(range(256))).decode(), encoding="base64")
        while offset is not None:
            d = s.data("sandbox_fs_read", name="box", path="long", offset=offset, encoding="base64")
            raw, offset = raw + base64.b64decode(d["content"]["text"], validate=True), d.get("next_offset")
        same(raw, bytes(range(256)), "bytes in pieces, whole quanta")
    with _mcp.Server(home) as s:
        r = s.data("sandbox_exec", name="box", command="sh", args=["-c", "yes | head -c 3000000"])
        same((len(r["stdout"]["text"]), r["stdout"]["total_bytes"], r["exit_code"]), (1 << 20, 3000000, 0), "a MiB by default")


def looks(s):
    d = s.data("sandbox_logs_read", name="box", tail=5)
    ok(d["count"] == 5 and d["logs"]["text"].count("\n") == 5, "logs_read", d)
    line = d["logs"]["text"].splitlines()[2]
    same(s.data("sandbox_logs_read", name="box", grep=line, tail=1000)["logs"]["text"], line + "\n", "with grep")
    d = s.data("sandbox_logs_stream", name="box", follow_timeout_ms=0)
    c = d["cursor"]
    same(s.data("sandbox_logs_stream", name="box", cursor=c, follow_timeout_ms=300)["count"], 0, "logs_stream: nothing new")
    s.data("sandbox_exec", name="box", command="sh", args=["-c", "echo marked-line >/dev/console"])
    d = s.data("sandbox_logs_stream", name="box", cursor=c, follow_timeout_ms=20000)
    ok("marked-line" in d["logs"]["text"], "what is new", d)
    same(s.error("sandbox_logs_stream", name="box", cursor="x")["code"], "ValueError", "a cursor that is none")
    m = s.data("sandbox_metrics", name="box")
    ok(0 < m["metrics"]["MemoryUtilization"] < 100 and m["live"]["memory"]["total"] > 1 << 20, "metrics", m)
    ok("metrics" in s.data("sandbox_metrics_all")["sandboxes"][0], "metrics_all")
    same([x["sample"] for x in s.data("sandbox_metrics_stream", name="box", samples=2, interval_ms=200)["samples"]], [1, 2], "metrics_stream")
    n = s.start("tools/call", {"name": "sandbox_fs_watch", "arguments": {"name": "box", "path": WORK, "timeout_ms": 30000}})
    time.sleep(2)
    s.data("sandbox_fs_write", name="box", path="new/file", content="x")
    ev = s.wait(n)["result"]["structuredContent"]["data"]["events"]
    ok(any(x["event"] == "create" and x["path"] == f"{WORK}/new" for x in ev), "fs_watch", ev)
    same(s.data("sandbox_fs_watch", name="box", path=WORK, timeout_ms=300)["events"], [], "a watch in vain")
    r = s.data("runtime_check")
    ok(r["ready"] and r["backend"] == "local", "runtime_check", r)
    ok(s.data("runtime_install")["runtime"]["ready"], "runtime_install")
    same((s.data("infra_outputs")["ready"], s.data("infra_list")["count"]), (False, 0), "infra without AWS")


def images(s, home):
    if not shutil.which("mkfs.erofs"):
        skip("images", "mkfs.erofs is not installed")
        return
    top = os.path.join(home.path, "image")
    os.makedirs(os.path.join(top, "etc"))
    for text in ("one", "two"):
        with open(os.path.join(top, "etc/text"), "w", encoding="utf-8") as f:
            f.write(text)
        same(home.call("image", "build", top, "--name", "mine", "--no-template").returncode, 0, "an image is built")

    def names(**args):
        return [f"{x['name']}:{x['version']}" for x in s.data("image_list", **args)["images"]]

    base = names(managed=True)
    ok(base and all(x.startswith("base:") for x in base), "image_list of what is installed", base)
    same(sorted(names()), sorted([*base, "mine:1", "mine:2"]), "image_list")
    d = s.data("image_inspect", image_arn="mine")
    same((d["image"]["version"], d["image"]["newest"], d["managed"]), (2, True, False), "image_inspect: the newest of a name")
    same(s.data("image_inspect", image_arn="mine:1")["image"]["newest"], False, "and one version")
    same(s.error("image_inspect", image_arn="none")["code"], "not_found", "an image that is not there")
    c = s.ask("resources/read", {"uri": "agent-sandbox://images"})["result"]["contents"][0]
    same(json.loads(c["text"])["count"], len(base) + 2, "the resource has them too")
    same([s.error(t, **a)["code"] for t, a in (("image_remove", {"image_arn": "mine"}), ("image_prune", {}))], ["confirm_required"] * 2,
         "images are not removed without confirm")
    same(len(names()), len(base) + 2, "they are there")
    same(s.data("image_prune", confirm=True), {"removed": ["mine:1"], "kept": [*base, "mine:2"], "removed_count": 1}, "image_prune")
    same(s.error("image_remove", image_arn="base", confirm=True)["code"], "denied", "what is installed is not removed")
    same(s.data("image_remove", image_arn="mine", confirm=True), {"versions": ["mine:2"], "image_arn": "mine", "removed": True},
         "image_remove")
    same(s.error("image_remove", image_arn="mine", confirm=True)["code"], "not_found", "once more")


LISTEN = """
import socket
s = socket.create_server(("127.0.0.1", 7777))
while True:
    c, _ = s.accept()
    c.sendall(b"from the guest " + c.recv(9))
    c.close()
"""


def echo(port):
    """What the guest's port says through the forward; None when nobody listens here."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as c:
            c.sendall(b"x")
            return b"".join(iter(lambda: c.recv(99), b""))
    except ConnectionError:
        return None


def forwards(s, home):
    n = s.data("sandbox_exec_start", name="box", command="python3", args=["-c", LISTEN])["session"]
    with _mcp.Server(home) as t:
        d = t.data("sandbox_forward_start", name="box", port=7777)
        port = d["local_port"]
        same(d, {"name": "box", "address": "127.0.0.1", "local_port": port, "port": 7777}, "forward_start picks a port")
        same(until(lambda: echo(port) == b"from the guest x", 60), True, "the sandbox answers there")
        same(t.data("sandbox_forward_list"), {"forwards": [d], "count": 1}, "forward_list")
        same(s.data("sandbox_forward_list")["count"], 0, "another server has none")
        ok("cannot listen" in t.error("sandbox_forward_start", name="box", port=7777, local_port=port)["message"], "a port that is taken")
        same(t.error("sandbox_forward_start", name="box", port=9000)["code"], "denied", "the hook port")
        same([t.error("sandbox_forward_start", name="box", port=p)["code"] for p in (0, -1, 65536)], ["ValueError"] * 3, "no ports")
        same(t.error("sandbox_forward_start", name="none", port=80)["code"], "SandboxError", "an unknown sandbox")
        same(t.data("sandbox_forward_stop", local_port=port), {"local_port": port, "stopped": True}, "forward_stop")
        same((echo(port), t.data("sandbox_forward_list")["count"]), (None, 0), "the port is closed")
        same(t.error("sandbox_forward_stop", local_port=port)["code"], "not_found", "once more")
        last = t.data("sandbox_forward_start", name="box", port=7777, local_port=port)["local_port"]
        same((last, echo(port)), (port, b"from the guest x"), "the same port again")
        same(t.end(), 0, "the server ends with its input")
    same(echo(port), None, "and the forward with it")
    with _mcp.Server(home) as t:
        port = t.data("sandbox_forward_start", name="box", port=7777)["local_port"]
        t.p.kill()
        same(until(lambda: echo(port) is None, 60), True, "a server that is killed takes its forward along")
    with _mcp.Server(home, "--no-network") as t:
        same(t.error("sandbox_forward_start", name="box", port=7777)["code"], "policy_denied", "--no-network forwards nothing")
    s.data("sandbox_exec_close", name="box", session=n)


def snapshots(s):
    same(s.data("snapshot_create", name="box", snapshot="s1"), {"name": "box", "snapshot": "s1"}, "snapshot_create")
    same([x["name"] for x in s.data("snapshot_list")["snapshots"]], ["s1"], "snapshot_list")
    same(s.data("snapshot_restore", name="again", snapshot="s1")["name"], "again", "snapshot_restore")
    same(s.data("sandbox_fs_read", name="again", path="a/b.txt")["content"]["text"], "héllo\n", "its files are there")
    same(s.data("snapshot_remove", snapshot="s1")["removed"], True, "snapshot_remove")
    same(s.error("snapshot_remove", snapshot="s1")["code"], "not_found", "once more")
    s.data("sandbox_remove", name="again")


def links(s, home):
    """Links within what is copied lead nowhere but where they led."""
    tree = os.path.join(home.path, "linked")
    os.makedirs(os.path.join(tree, "sub"))
    os.symlink("/etc/hostname", os.path.join(tree, "file"))
    os.symlink("/etc", os.path.join(tree, "dir"))
    ok(s.data("sandbox_fs_upload", name="box", host_path="linked", dest="linked"), "a directory with links is uploaded")
    same([s.data("sandbox_fs_stat", name="box", path="linked/" + x)["is_symlink"] for x in ("file", "dir")], [True, True], "as links: nothing behind them")
    outside = os.path.join(home.top, "outside")
    os.mkdir(outside)
    os.makedirs(os.path.join(home.path, "into/linked"))
    os.symlink(outside, os.path.join(home.path, "into/linked/sub"))
    s.data("sandbox_fs_write", name="box", path="linked/sub/planted", content="x")
    s.tool("sandbox_fs_download", name="box", src="linked", host_path="into")
    same(os.listdir(outside), [], "a download does not go through a link that is there")


def policies(s, home):
    s.data("sandbox_stop", name="box")
    with _mcp.Server(home, "--read-only") as t:
        same([t.error(x, name="box", **a)["code"] for x, a in (("sandbox_fs_list", {}), ("sandbox_metrics", {}), ("sandbox_exec_list", {}))],
             ["policy_denied"] * 3, "a read-only server resumes nothing")
        same(t.data("sandbox_status", name="box")["status"], "SUSPENDED", "it is as it was")
        s.data("sandbox_start", name="box")
        ok(t.data("sandbox_fs_list", name="box"), "and reads what runs")
    ok(s.data("sandbox_create", name="net", memory=256, egress=True), "a sandbox with a network")
    ok(s.data("snapshot_create", name="net", snapshot="net"), "a snapshot of it")
    with _mcp.Server(home, "--no-network") as t:
        same([t.error(x, **a)["code"] for x, a in (
            ("sandbox_branch", {"name": "net", "names": ["net2"]}), ("snapshot_restore", {"name": "net2", "snapshot": "net"}),
            ("sandbox_create", {"name": "net2", "egress": True}), ("sandbox_run", {"command": "true", "egress": True}))],
             ["policy_denied"] * 4, "--no-network: none is made, in whatever way")
        same(t.error("snapshot_restore", name="net2", snapshot="none")["code"], "not_found", "a snapshot that is not there")
        ok(t.data("sandbox_branch", name="box", names=["quiet"]), "one without a network is")
    s.data("snapshot_remove", snapshot="net")
    for name in ("net", "quiet"):
        s.data("sandbox_remove", name=name)


def ajv(home):
    """Everything that was answered above, checked by the validator that the official clients use."""
    why = _mcp.official()
    if why:
        skip("structured content by Ajv", why)
        return
    path = os.path.join(home.path, "seen")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(x) + "\n" for x in _mcp.Server.seen)
    r = _mcp.node(home, "_mcp_ajv.mjs", path)
    out = json.loads(r.stdout or "{}")
    same((out.get("bad"), out.get("count", 0) > 100, out.get("schemas", 0) > 30), ([], True, True), "all structured content fits its outputSchema, by Ajv")


with _asb.Home() as home:
    with _mcp.Server(home) as s:
        s.home = home
        ok(s.data("sandbox_create", name="box", memory=256), "a sandbox")
        files(s)
        host(s, home)
        sessions(s)
        looks(s)
        links(s, home)
        forwards(s, home)
        images(s, home)
        snapshots(s)
        policies(s, home)
        same(s.bad, [], "nothing but messages on standard output")
    caps(home)
    ajv(home)
_asb.done()
