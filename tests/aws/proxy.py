# SPDX-License-Identifier: Apache-2.0
"""The data plane in front of one MicroVM, as docs and recordings describe it: TLS, a token for each request, the port by a
header, both taken away; of a WebSocket both as subprotocols; the exact refusals; then a real agentd on loopback, or what else listens
there. Bytes are passed on as they come."""
import http.client
import select
import socket
import threading
import time

from server import Handler


def proxy_to(port_of):
    """A handler class whose guest ports are PORT_OF: {8080: port on this machine}."""

    class Proxy(Handler):
        vm = None
        requests = []  # (method, path) of all proxies of this class
        # texts: "502", "403", "cut" (after the head of an answer), "part" (after its first bytes), "exit" (before a command's end),
        # "open" (says the end, and does not end), "hint" (a 103 before it), "hints" (without end)
        faults = []
        reads = False  # the whole request, before it is refused
        heads = []     # the fields of requests, as they came
        unwell = set() # microvmIds without an answer to GET /healthz
        resume_s = 0   # how long a request is held while a suspended VM is resumed

        def refused(self, status, text=""):
            self.close_connection = True
            if self.reads:
                self.pass_request(None)
            self.reply(status, raw=text.encode(), kind="text/plain")

        def answer(self):
            aws, vm = self.aws, self.vm
            port, token = self.headers.get("X-aws-proxy-port", "8080"), self.headers.get("X-aws-proxy-auth")
            self.requests.append((self.command, self.path))
            self.heads.append(self.headers.items())
            self.protocols = None
            if self.headers.get("Upgrade", "").lower() == "websocket":
                port, token = self.read_protocols()
            if not port.isdigit():
                return self.refused(400, "malformed port")
            ill = self.path == "/healthz" and vm["microvmId"] in self.unwell
            # what asks by itself, and what nobody waits for, takes no fault away from what a test does next
            fault = self.faults.pop(0) if self.faults and not ill and self.command != "DELETE" else None
            if fault == "403":
                return self.refused(403, "Token authentication failed")
            why = aws.allowed(token, vm["microvmId"], int(port))
            if why:
                return self.refused(*why)
            if fault == "502" or ill:
                return self.refused(502)
            if vm["state"] == "SUSPENDED" and (vm["idlePolicy"] or {}).get("autoResumeEnabled"):
                time.sleep(self.resume_s)
                vm["state"] = "RUNNING"
            if vm["state"] not in ("RUNNING", "SUSPENDING") or int(port) not in port_of:
                return self.refused(502)
            return self.forward(port_of[int(port)], fault)

        def read_protocols(self):
            """A WebSocket's port and token; what remains of the subprotocols is the client's own."""
            offered = [p.strip() for p in self.headers.get("Sec-WebSocket-Protocol", "").split(",") if p.strip()]
            auth, number, mark = "lambda-microvms.authentication.", "lambda-microvms.port.", "lambda-microvms"
            token = next((p[len(auth):] for p in offered if p.startswith(auth)), None)
            port = next((p[len(number):] for p in offered if p.startswith(number)), "8080")
            self.protocols = [p for p in offered if p != mark and not p.startswith((auth, number))]
            return port, token if mark in offered else None

        def forward(self, port, fault):
            up = socket.create_connection(("127.0.0.1", port))
            try:
                head = [f"{self.command} {self.path} HTTP/1.1"]
                head += [f"{k}: {v}" for k, v in self.headers.items() if not k.lower().startswith("x-aws-proxy-")
                         and not (self.protocols is not None and k.lower() == "sec-websocket-protocol")]
                if self.protocols:
                    head += ["Sec-WebSocket-Protocol: " + ", ".join(self.protocols)]
                up.sendall(("\r\n".join(head + ["x-amzn-requestid: p", "", ""])).encode("latin-1"))
                body = threading.Thread(target=self.pass_request, args=(up,), daemon=True)
                body.start()
                threading.Thread(target=self.watch, args=(up,), daemon=True).start()
                self.pass_answer(up, fault)
                body.join(30)
            finally:
                up.close()

        def watch(self, up):
            """When the client leaves, the application is told, also when it says nothing."""
            poll, fd = select.poll(), self.connection.fileno()
            poll.register(fd, select.POLLRDHUP)
            while up.fileno() >= 0 and self.connection.fileno() == fd:
                if poll.poll(200):
                    try:
                        up.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
                    return

        def pump(self, up, first):
            """After a 101, until one side ends."""
            self.close_connection = True
            self.connection.sendall(first)
            while True:
                ready = [self.connection] if self.connection.pending() else select.select([up, self.connection], [], [])[0]
                for a, b in ((up, self.connection), (self.connection, up)):
                    if a not in ready:
                        continue
                    piece = a.recv(65536)
                    if not piece:
                        return
                    b.sendall(piece)

        def pass_request(self, up):
            """An application that wants no more has closed: the rest is read and dropped. UP None: all of it."""
            def send(data):
                try:
                    if up:
                        up.sendall(data)
                except OSError:
                    pass
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                while True:
                    line = self.rfile.readline()
                    if not line.strip():
                        self.close_connection = True
                        return
                    n = int(line.split(b";")[0], 16)
                    send(line + self.rfile.read(n + 2))
                    if n == 0:
                        return
            left = int(self.headers.get("Content-Length") or 0)
            while left:
                piece = self.rfile.read1(min(left, 65536))
                if not piece:
                    self.close_connection = True
                    return
                send(piece)
                left -= len(piece)

        def pass_answer(self, up, fault):
            r = http.client.HTTPResponse(up, method=self.command)
            r.begin()
            for _ in range({"hint": 1, "hints": 5000}.get(fault, 0)):
                self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-Hint: 1\r\nSet-Cookie: hint=1\r\nUpgrade: websocket\r\n\r\n")
            self.send_response_only(r.status)
            raw = r.status == 101
            if raw and not r.getheader("Sec-WebSocket-Protocol"):
                self.send_header("Sec-WebSocket-Protocol", "lambda-microvms")
            for k, v in r.getheaders():
                if k.lower() not in ("connection", "keep-alive") or raw:
                    self.send_header(k, v)
            self.end_headers()
            if raw:
                up.setblocking(False)
                first = r.fp.peek()
                up.setblocking(True)
                return self.pump(up, first)
            if fault == "cut":
                self.close_connection = True
                return
            while True:
                piece = r.read1(65536)
                if not piece:
                    break
                if fault == "exit" and b'"event":"exit"' in piece:
                    self.close_connection = True
                    return
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if r.chunked else piece)
                self.wfile.flush()
                if fault == "open" and b'"event":"exit"' in piece:
                    select.select([self.connection], [], [], 30)
                if fault == "part" or (fault == "open" and b'"event":"exit"' in piece):
                    self.close_connection = True
                    return
            if r.chunked:
                self.wfile.write(b"0\r\n\r\n")
            elif r.length:  # less came than was promised
                self.close_connection = True
            elif r.length is None and self.command != "HEAD":  # the end of the connection is its end
                self.close_connection = True
                self.wfile.flush()
                self.connection.unwrap()

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = answer

    return Proxy
