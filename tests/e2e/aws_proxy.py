#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""asb behind an HTTP proxy (HTTPS_PROXY, ALL_PROXY, NO_PROXY): the calls and the data plane go through its CONNECT, and nothing
that is meant for AWS is in what the proxy itself reads."""
import base64
import http.server
import select
import socket
import threading

from _aws import IMAGE, Cloud, done, ok, same


class Tunnel(http.server.BaseHTTPRequestHandler):
    """A proxy that only tunnels. `heads` has what it was asked, `want` the Proxy-Authorization that it insists on, `status`
    what it says instead of 200."""
    heads, want, status = [], None, 200
    timeout = 60

    def log_message(self, *args):
        pass

    def do_CONNECT(self):
        self.heads.append((self.path, str(self.headers)))
        self.close_connection = True
        if self.want and self.headers.get("Proxy-Authorization") != self.want:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="test"')
            self.end_headers()
            return
        if self.status != 200:
            self.send_error(self.status)
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as up:
            self.send_response_only(200)
            self.end_headers()
            self.splice(up)

    def splice(self, up):
        other = {up: self.connection, self.connection: up}
        while True:
            for s in select.select(list(other), [], [], 60)[0]:
                data = s.recv(65536)
                if not data:
                    return
                other[s].sendall(data)

    def refuse(self):
        self.heads.append((self.path, str(self.headers)))
        self.send_error(405)

    do_GET = do_POST = do_PUT = refuse


def listen():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tunnel)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


def asked():
    hosts = [path for path, _ in Tunnel.heads]
    Tunnel.heads.clear()
    return hosts


def through(cloud, url):
    """A whole life, all of it by the proxy."""
    env = {"NO_PROXY": "", "HTTPS_PROXY": url}
    api = f"localhost:{cloud.aws.api.server_port}"
    same(cloud.call("create", "app", "--image", IMAGE, env=env).returncode, 0, "create by a proxy")
    vm = cloud.state()["app"]["microvm_id"]
    endpoint = cloud.aws.vms[vm]["endpoint"]
    r = cloud.call("exec", "app", "cat", env=env, input=b"there and back")
    same((r.returncode, r.stdout), (0, b"there and back"), "a command by a proxy")
    heads = "".join(text for _, text in Tunnel.heads)
    secrets = [*cloud.aws.tokens, "AKIDEXAMPLE", "X-aws-proxy", "Authorization"]
    ok(cloud.aws.tokens and not [s for s in secrets if s.lower() in heads.lower()], "the proxy reads no token and no signature", heads)
    same(set(asked()), {api, endpoint}, "the service and the VM's endpoint, and nothing else")
    r = cloud.call("exec", "app", "true", env=env)
    same((r.returncode, asked()), (0, [endpoint]), "with a token at hand: one tunnel, to the endpoint")


def names(cloud, url):
    api = f"localhost:{cloud.aws.api.server_port}"
    for name, env, want in (("in small letters", {"https_proxy": url}, [api]), ("for all protocols", {"ALL_PROXY": url}, [api]),
                            ("with an exception", {"HTTPS_PROXY": url, "NO_PROXY": "localhost"}, []),
                            ("another exception", {"HTTPS_PROXY": url, "NO_PROXY": "example.com"}, [api]),
                            ("for plain HTTP only", {"http_proxy": url}, [])):
        r = cloud.call("inspect", "app", env={"NO_PROXY": "", **env})
        same((r.returncode, asked()), (0, want), f"a proxy {name}")


def metadata(cloud, url):
    """Credentials of an instance: its service must not be asked by way of a proxy."""
    cloud.aws.imds = {}
    env = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "false",
           "AWS_EC2_METADATA_SERVICE_ENDPOINT": cloud.aws.metadata, "NO_PROXY": "", "http_proxy": url, "ALL_PROXY": url}
    r = cloud.call("inspect", "app", env=env)
    heads = asked()
    same((r.returncode, set(heads)), (0, {f"localhost:{cloud.aws.api.server_port}"}), "keys of an instance are not asked for by a proxy")


def trouble(cloud, server):
    port = server.server_port
    once = {"NO_PROXY": "", "AWS_MAX_ATTEMPTS": "1"}

    def fails(name, url, *texts):
        r = cloud.call("inspect", "app", env={**once, "HTTPS_PROXY": url})
        ok(r.returncode != 0 and all(t in r.stderr for t in texts) and b"hunter2" not in r.stderr, f"{name}: {texts[0].decode()}", r.stderr)

    Tunnel.want = "Basic " + base64.b64encode(b"me:hunter2").decode()
    r = cloud.call("inspect", "app", env={**once, "HTTPS_PROXY": f"http://me:hunter2@127.0.0.1:{port}"})
    same((r.returncode, set(asked())), (0, {f"localhost:{cloud.aws.api.server_port}"}), "a proxy with a password")
    fails("no password", f"http://127.0.0.1:{port}", b"407")
    fails("a wrong password", f"http://me:hunter22@127.0.0.1:{port}", b"407")
    Tunnel.want = None
    Tunnel.status = 503
    fails("a proxy without a way", f"http://127.0.0.1:{port}", b"503")
    Tunnel.status = 200
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    fails("no proxy there", f"http://me:hunter2@127.0.0.1:{free.getsockname()[1]}", b"HTTPS_PROXY names a proxy", b"asb doctor")
    fails("an address that is none", "http://me:hunter2@no host:1", b"proxy")
    fails("another kind of proxy", f"socks5h://me:hunter2@127.0.0.1:{port}", b"HTTPS_PROXY names a proxy")
    r = cloud.call("exec", "app", "true", env={**once, "HTTPS_PROXY": f"http://me:hunter2@127.0.0.1:{free.getsockname()[1]}"})
    ok(r.returncode == 125 and b"names a proxy" in r.stderr and b"hunter2" not in r.stderr, "the data plane says the same", r.stderr)
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        r = cloud.call("inspect", "app", env={**once, "HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "localhost",
                                              "AWS_ENDPOINT_URL": f"https://localhost:{dead.getsockname()[1]}"})
        ok(r.returncode != 0 and b"connect" in r.stderr.lower() and b"names a proxy" not in r.stderr,
           "a host that goes by none: the proxy is not blamed", r.stderr)
    free.close()


with Cloud() as c:
    for key in [k for k in c.home.env if k.lower() in ("https_proxy", "http_proxy", "all_proxy", "no_proxy")]:
        c.home.env.pop(key)
    proxy = listen()
    address = f"http://127.0.0.1:{proxy.server_port}"
    through(c, address)
    names(c, address)
    metadata(c, address)
    trouble(c, proxy)
    same(c.call("rm", "app").returncode, 0, "rm")
    proxy.shutdown()
    proxy.server_close()
done()
