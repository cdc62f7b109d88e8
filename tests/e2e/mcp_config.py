#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""asb mcp --print-config: what it prints is in the client's own format, and starts a server. No sandbox is started."""
import json
import os
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ASB, ok, same, skip
import _mcp

_asb.need_asb()
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": _mcp.REVISION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
JSON = {  # what each client's manual wants: the member that lists servers, and a server's own members
    "cursor": ("mcpServers", ["args", "command", "type"]),
    "vscode": ("servers", ["args", "command", "type"]),
    "windsurf": ("mcpServers", ["args", "command"]),
    "generic": ("mcpServers", ["args", "command"]),
}


def answers(home, argv, name):
    r = subprocess.run(argv, input=json.dumps(INITIALIZE).encode() + b"\n", env=home.env, cwd=home.path, capture_output=True, timeout=60, check=False)
    ok(r.returncode == 0 and json.loads(r.stdout or b"{}").get("result", {}).get("serverInfo"), f"{name}: the command starts a server", argv, r.stdout, r.stderr)


def printed(home, asb, client):
    r = subprocess.run([asb, "mcp", "--print-config", client], env=home.env, capture_output=True, timeout=60, check=False)
    ok(r.returncode == 0 and r.stderr.startswith(b"asb: for "), f"{client}: where it belongs is said on standard error", r.stderr)
    return r.stdout.decode()


def json_clients(home, asb):
    for client, (member, wanted) in JSON.items():
        doc = json.loads(printed(home, asb, client))
        same((list(doc), list(doc[member])), ([member], ["asb"]), f"{client}: one server, under {member}")
        server = doc[member]["asb"]
        same((sorted(server), server.get("type", "stdio"), os.path.isabs(server["command"])), (wanted, "stdio", True), f"{client}: its members")
        answers(home, [server["command"], *server["args"]], client)


def claude(home, asb):
    text = printed(home, asb, "claude")
    words = shlex.split(text)
    same(words[:7], ["claude", "mcp", "add", "--scope", "user", "asb", "--"], "claude: one command")
    answers(home, words[7:], "claude")
    # A shell passes it on as one word, whatever is in the path.
    stub = os.path.join(home.top, "bin")
    os.makedirs(stub, exist_ok=True)
    with open(os.path.join(stub, "claude"), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    os.chmod(os.path.join(stub, "claude"), 0o755)
    r = subprocess.run(["sh", "-c", text], env={**home.env, "PATH": stub + ":" + os.environ["PATH"]}, capture_output=True, timeout=60, check=False)
    same(r.stdout.decode().split("\0")[:-1], words[1:], "claude: the shell gives it these words")


def goose(home, asb):
    text = printed(home, asb, "goose")
    path = os.path.join(home.top, "goose.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    why = _mcp.official()
    if why:
        skip("goose", why)
        return
    e = json.loads(_mcp.node(home, "_yaml.mjs", path).stdout)["extensions"]["asb"]
    same((sorted(e), e["name"], e["type"], e["enabled"], e["timeout"]),
         (["args", "cmd", "enabled", "name", "timeout", "type"], "asb", "stdio", True, 300), "goose: its members")
    answers(home, [e["cmd"], *e["args"]], "goose")


with _asb.Home() as home:
    odd = os.path.join(home.top, "it's \"here\" $HOME: #é")
    os.mkdir(odd)
    shutil.copy(os.path.realpath(ASB), os.path.join(odd, "asb"))
    for asb in (ASB, os.path.join(odd, "asb")):
        json_clients(home, asb)
        claude(home, asb)
        goose(home, asb)
    r = home.call("mcp", "--print-config", "emacs")
    ok(r.returncode == 2 and b"claude" in r.stderr and not r.stdout, "another client: the choices are told", r.returncode, r.stderr)
_asb.done()
