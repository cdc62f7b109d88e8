# SPDX-License-Identifier: Apache-2.0
"""An in-guest server as the Python project's images have it: four routes and nothing else, with FastAPI's words for what it does not
have. For tests of what asb does where agentd is not."""
import base64
import http.server
import json
import os
import subprocess
import threading


class Guest(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_port
        self.seen = []      # (method, path) of all requests
        self.html = False   # says in HTML that there is no such route
        self.say = None     # (status, type, bytes) instead of the next answer to a command
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # connections that a test cuts

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, doc=None, raw=None, kind="application/json"):
        data = raw if raw is not None else json.dumps(doc).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def no_route(self):
        if self.server.html:
            return self.reply(404, raw=b"<h1>404</h1>", kind="text/html")
        return self.reply(404, {"detail": "Not Found"})

    def exec_(self, q):
        if self.server.say:
            status, kind, raw = self.server.say
            return self.reply(status, raw=raw, kind=kind)
        env = {**os.environ, **(q.get("env") or {})}
        try:
            r = subprocess.run([q["command"], *q.get("args", [])], cwd=q.get("cwd"), env=env, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=q.get("timeout"), check=False)
        except subprocess.TimeoutExpired:
            return self.reply(504, {"detail": "command timed out"})
        except FileNotFoundError:
            return self.reply(400, {"detail": f"command not found: {q['command']}"})
        except OSError:
            return self.reply(500, raw=b"Internal Server Error", kind="text/plain; charset=utf-8")
        return self.reply(200, {"exit_code": r.returncode, "stdout": base64.b64encode(r.stdout).decode(),
                                "stderr": base64.b64encode(r.stderr).decode(), "encoding": "base64"})

    def read(self, q):
        try:
            with open(q["path"], "rb") as f:
                self.reply(200, {"content": base64.b64encode(f.read()).decode(), "encoding": "base64"})
        except FileNotFoundError:
            self.reply(404, {"detail": f"no such file: {q['path']}"})
        except OSError as e:
            self.reply(400, {"detail": str(e)})

    def write(self, q):
        data = base64.b64decode(q["content"]) if q.get("encoding", "base64") == "base64" else q["content"].encode()
        os.makedirs(os.path.dirname(q["path"]) or "/", exist_ok=True)
        try:
            with open(q["path"], "wb") as f:
                f.write(data)
        except OSError as e:
            return self.reply(400, {"detail": str(e)})
        return self.reply(200, {"bytes_written": len(data)})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path))
        route = {"/v1/exec": self.exec_, "/v1/fs/read": self.read, "/v1/fs/write": self.write}.get(self.path)
        if not route:
            return self.no_route()
        if self.headers.get("Content-Type") != "application/json":
            return self.reply(422, {"detail": [{"type": "model_attributes_type", "loc": ["body"], "msg": "Input should be a valid dictionary"}]})
        return route(json.loads(body))

    def other(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path))
        if self.path == "/healthz" and self.command == "GET":
            return self.reply(200, {"status": "ok", "version": "0.1.0"})
        return self.no_route()

    do_GET = do_PUT = do_DELETE = do_HEAD = other
