#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""What the pages for agents say, done: SKILL.md, llms.txt and docs/mcp.md.

Every indented line of SKILL.md is run as it stands, in order, in one shell, and must succeed. Every command in back quotes of the three
pages must be one of asb's, with options that it has; those that only look are run. The session of docs/mcp.md is had again.
"""
import json
import os
import re
import shlex
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ASB, TOP, ok, same, until
import _mcp

sys.path.insert(0, os.path.join(TOP, "tests/lib"))
from shell import Shell

_asb.need_vm()
PAGES = ("SKILL.md", "llms.txt", "docs/mcp.md")
TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        open('report.txt', 'w').write('fine')\n"


def text_of(page):
    with open(os.path.join(TOP, page), encoding="utf-8") as f:
        return f.read()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


# --- the lines of SKILL.md ---

def fetch(port):
    """What the forwarded port answers; None until it does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as c:
            c.sendall(b"GET /test_it.py HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: c.recv(4096), b""))
    except OSError:
        return None


def alone(command):
    """COMMAND without the shell's own input, which asb run and exec would pass on."""
    return "{ " + command + "\n} </dev/null"


def forward(shell, line):
    port = free_port()
    shell.run(line.replace("8080", str(port)).split("#")[0] + "</dev/null & forward=$!")
    ok(until(lambda: b"unittest" in (fetch(port) or b""), 60), line, "nothing answers at the port")
    shell.run("kill -INT $forward; wait $forward")


def skill(home):
    src = os.path.join(home.path, "src")
    os.mkdir(src)
    with open(os.path.join(src, "test_it.py"), "w", encoding="utf-8") as f:
        f.write(TEST)
    shell = Shell(home.path, {**home.env, "PATH": os.path.dirname(ASB) + ":" + os.environ["PATH"]}, limit=180)
    lines = re.findall(r"^    (\S.*)$", text_of("SKILL.md"), re.M)
    for line in lines:
        command = line.replace("…", "true")
        if "asb forward" in line:
            forward(shell, line)
        elif " -f " in line:  # goes on until the command ends, which is further down
            status, out = shell.run(command.split("#")[0] + "</dev/null >followed 2>&1 & follow=$!")
            ok(status == 0, line, out)
        else:
            status, out = shell.run(command if "|" in command else alone(command))
            ok(status == 0, line, status, out)
        if "print(6*7)" in line:
            same(out, "42\n", "its output is the command's")
        if " wc -c" in line:
            same(out.strip(), "5", "stdin is passed on")
    ok(len(lines) >= 12, "the lines were found", lines)
    same(shell.run("wait $follow; echo $?")[1].strip()[-1:], "0", "what followed the output has ended with the command")
    with open(os.path.join(home.path, "followed"), encoding="utf-8") as f:
        ok("GET /test_it.py" in f.read(), "and had seen it")
    same(shell.run("cat report.txt")[1], "fine", "what came out of the sandbox")
    same(home.left(), [], "the lines leave nothing behind")
    for what, want in (("sh -c 'exit 7'", 7), ("none", 127), ("/etc", 126), ("sh -c 'kill -9 $$'", 137), ("--timeout 1", 124)):
        run = f"asb run {what} -- sleep 60" if what.startswith("--") else f"asb run -- {what}"
        same(shell.run(alone(run))[0], want, f"the exit status of {run}")
    shell.end()


# --- commands in running text ---

def spans():
    """[(page, command)]: in back quotes, beginning with asb; the lines of fences and indented ones are not meant."""
    for page in PAGES:
        prose = re.sub(r"^(```.*?^```|    \S.*?)$", "", text_of(page), flags=re.M | re.S)
        for command in re.findall(r"`(asb [^`]+)`", prose):
            yield page, command


def commands(home):
    doc = json.loads(home.call("manifest", "--json").stdout)
    table = {c["name"]: c for c in doc["commands"]}
    common = {o["name"] for o in doc["options"]}
    ran = set()
    for page, command in spans():
        words = shlex.split(command.replace("COMMAND", "exec").split(" -- ")[0])[1:]
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in table), None)
        known = common | {o["name"] for o in table[name]["options"]} if name else set()
        given = {w[2:].split("=")[0] for w in words if w.startswith("--")}
        group = len(words) == 1 and any(n.startswith(words[0] + " ") for n in table)
        ok(group or (name and given <= known), f"{page}: {command}", name, given - known)
        if words[0] in ("doctor", "ls", "manifest", "help", "mcp") and not re.search("[A-Z]{2,}", " ".join(words)) and command not in ran:
            ran.add(command)
            r = subprocess.run([ASB, *words], env=home.env, cwd=home.path, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
            ok(r.returncode == 0, f"{command} runs", r.stdout[-300:], r.stderr[-300:])
    ok(len(ran) >= 5, "the commands were found", ran)


# --- the session of docs/mcp.md ---

def shape(value):
    """VALUE without what differs from run to run: identifiers, times, versions, texts."""
    if isinstance(value, dict):
        return {k: "…" if k in ("duration_ms", "version", "instructions", "microvm_id", "text", "content", "progress") else shape(v)
                for k, v in value.items()}
    return value


def session(home):
    page = text_of("docs/mcp.md")
    block = next(b for b in re.findall(r"^```\n(.*?)^```", page, re.M | re.S) if b.startswith("> "))
    lines = block.splitlines()
    with _mcp.Server(home, begin=False) as s:
        answers = {json.loads(x[2:].replace("[…]", "[]"))["id"]: json.loads(x[2:].replace("[…]", "[]")) for x in lines
                   if x.startswith("< ") and '"id"' in x}
        methods = {json.loads(x[2:].replace("[…]", "[]"))["method"] for x in lines if x.startswith("< ") and '"id"' not in x}
        for x in (x[2:] for x in lines if x.startswith("> ")):
            m = json.loads(x)
            s.send(m)
            if "id" not in m:
                continue
            got, want = s.wait(m["id"]), answers.pop(m["id"])
            same(shape(got), shape(want), f"docs/mcp.md: the answer to {m['method']} {m.get('params', {}).get('name', '')}")
            sent = got["result"].get("structuredContent", {})
            if "data" in sent and "stdout" in sent["data"]:
                same(sent["data"]["stdout"], want["result"]["structuredContent"]["data"]["stdout"], "and what was printed")
        same(sorted({m["method"] for m in s.notes} - {"notifications/message"}), sorted(methods - {"notifications/message"}), "and what is told meanwhile")
        same(answers, {}, "every answer was asked for")
        s.tool("sandbox_remove", name="work")


with _asb.Home() as home:
    commands(home)
    skill(home)
    session(home)
_asb.done()
