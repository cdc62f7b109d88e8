# SPDX-License-Identifier: Apache-2.0
"""The data plane in front of one MicroVM, as docs and recordings describe it: TLS, a token for each request, the port by a
header, both taken away; the exact refusals; then a real agentd on loopback. Bytes are passed on as they come."""
import http.client
import socket

from server import Handler


def proxy_to(port_of):
    """A handler class whose guest ports are PORT_OF: {8080: port on this machine}."""

    class Proxy(Handler):
        vm = None
        requests = []  # (method, path) of all proxies of this class
        faults = []    # texts: "502", "403", "cut" (after the head of an answer)

        def refused(self, status, text=""):
            self.close_connection = True
            self.reply(status, raw=text.encode(), kind="text/plain")

        def answer(self):
            aws, vm = self.aws, self.vm
            port = self.headers.get("X-aws-proxy-port", "8080")
            self.requests.append((self.command, self.path))
            if not port.isdigit():
                return self.refused(400, "malformed port")
            fault = self.faults.pop(0) if self.faults else None
            if fault == "403":
                return self.refused(403, "Token authentication failed")
            why = aws.allowed(self.headers.get("X-aws-proxy-auth"), vm["microvmId"], int(port))
            if why:
                return self.refused(*why)
            if vm["state"] == "SUSPENDED" and (vm["idlePolicy"] or {}).get("autoResumeEnabled"):
                vm["state"] = "RUNNING"
            if fault == "502" or vm["state"] not in ("RUNNING", "SUSPENDING") or int(port) not in port_of:
                return self.refused(502)
            return self.forward(port_of[int(port)], fault)

        def forward(self, port, fault):
            up = socket.create_connection(("127.0.0.1", port))
            try:
                head = [f"{self.command} {self.path} HTTP/1.1"]
                head += [f"{k}: {v}" for k, v in self.headers.items() if not k.lower().startswith("x-aws-proxy-")]
                up.sendall(("\r\n".join(head + ["x-amzn-requestid: p", "", ""])).encode("latin-1"))
                self.pass_request(up)
                self.pass_answer(up, fault)
            finally:
                up.close()

        def pass_request(self, up):
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                while True:
                    line = self.rfile.readline()
                    n = int(line.split(b";")[0], 16)
                    up.sendall(line + self.rfile.read(n + 2))
                    if n == 0:
                        return
            left = int(self.headers.get("Content-Length") or 0)
            while left:
                piece = self.rfile.read1(min(left, 65536))
                if not piece:
                    return
                up.sendall(piece)
                left -= len(piece)

        def pass_answer(self, up, fault):
            r = http.client.HTTPResponse(up, method=self.command)
            r.begin()
            self.send_response_only(r.status)
            for k, v in r.getheaders():
                if k.lower() not in ("connection", "keep-alive"):
                    self.send_header(k, v)
            self.end_headers()
            if fault == "cut":
                self.close_connection = True
                return
            while True:
                piece = r.read1(65536)
                if not piece:
                    break
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if r.chunked else piece)
                self.wfile.flush()
            if r.chunked:
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer

    return Proxy
