# SPDX-License-Identifier: Apache-2.0
"""A stand-in for AWS: Lambda MicroVMs over TLS, every request checked against the service model and its signature recomputed
(model.py); STS, SSO, container and instance metadata as far as credentials need them; and faults on demand. What it answers
is what the live service was recorded to answer (tests/vectors/lambda-microvms.json): nulls, members that no model has."""
import email.utils
import http.server
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import uuid

from cloudwatch import CloudWatch
from model import Bad, Model, parse_authorization, signature

ACCOUNT = "123456789012"
SKEW_MAX = 300


def make_ca(folder):
    """A CA and a certificate for localhost, by the openssl command: (ca.pem, cert.pem, key.pem)"""
    def run(*args, stdin=b""):
        subprocess.run(["openssl", *args], cwd=folder, input=stdin, check=True, capture_output=True)

    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
    run("req", "-x509", "-new", "-key", "ca.key", "-days", "30", "-subj", "/CN=asb test CA", "-out", "ca.pem",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem")
    run("req", "-new", "-key", "key.pem", "-subj", "/CN=localhost", "-out", "cert.csr")
    with open(os.path.join(folder, "ext"), "w", encoding="utf-8") as f:
        f.write("subjectAltName=DNS:localhost\n")
    run("x509", "-req", "-in", "cert.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1", "-days", "30",
        "-extfile", "ext", "-out", "cert.pem")
    return [os.path.join(folder, n) for n in ("ca.pem", "cert.pem", "key.pem")]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # connections that a test cuts


class Fault:
    """What happens to the next TIMES requests of OPERATION (None = any)."""

    def __init__(self, operation=None, times=1, status=None, kind="", body=None, headers=(), cut=False, late=0.0):
        self.operation, self.times, self.status, self.kind = operation, times, status, kind
        self.body, self.headers, self.cut, self.late = body, headers, cut, late


class Aws(CloudWatch):
    """The service. `calls` has (operation, members) of all that was accepted, `refused` what was not and why."""

    def __init__(self, region="us-east-1", start_after=1, backend=None):
        self.region, self.start_after, self.backend = region, start_after, backend
        self.keys = {"AKIDEXAMPLE": ("secret+key/with=signs", None)}  # id: (secret, session token)
        self.models = [Model("lambda-microvms"), Model("lambda-core")]
        self.vms, self.tokens, self.client_tokens = {}, {}, {}
        self.calls, self.refused, self.faults, self.other, self.sent = [], [], [], [], []
        self.skew = 0  # of this server's clock
        self.page_size, self.empty_pages = 50, False
        self.token_life = 3600
        self.lock = threading.RLock()
        self.dir = tempfile.mkdtemp(prefix="asb-aws.")
        self.ca, cert, key = make_ca(self.dir)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(cert, key)
        self.connections = 0
        self.api = self.listen(Handler)
        self.url = f"https://localhost:{self.api.server_port}"
        self.plain = self.listen(Metadata, tls=False)
        self.metadata = f"http://127.0.0.1:{self.plain.server_port}"
        self.log = []
        self.roles, self.sso_tokens, self.imds, self.container_token = {}, {}, {}, None

    def listen(self, handler, tls=True, **more):
        server = Server(("127.0.0.1", 0), type(handler.__name__, (handler,), {"aws": self, **more}))
        if tls:
            server.socket = self.tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def env(self, **more):
        return {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": self.keys["AKIDEXAMPLE"][0],
                "AWS_REGION": self.region, "AWS_ENDPOINT_URL": self.url, "AWS_CA_BUNDLE": self.ca,
                "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "*", **more}

    def image(self, name="guest"):
        return f"arn:aws:lambda:{self.region}:{ACCOUNT}:microvm-image:{name}"

    def count(self, operation):
        return sum(1 for op, _ in self.calls if op == operation)

    def fault(self, operation, where="before"):
        with self.lock:
            for f in self.faults:
                if f.times > 0 and f.operation in (None, operation):
                    f.times -= 1
                    return f
        return None

    # --- signatures

    def verify(self, method, path, query, headers, body):
        named = {k.lower(): v for k, v in headers}
        auth = parse_authorization(named.get("authorization"))
        if auth["key"] not in self.keys:
            raise Bad(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        secret, token = self.keys[auth["key"]]
        if named.get("x-amz-security-token") != token:
            raise Bad(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        for name in named:
            if (name.startswith("x-amz-") or name == "content-type") and name not in auth["signed"]:
                raise Bad(403, "InvalidSignatureException", f"{name} is not signed")
        service = "lambda" if path != "/" else "logs" if "x-amz-target" in named else "sts"
        if auth["scope"][1:] != (self.region, service):
            raise Bad(403, "InvalidSignatureException", f"Credential should be scoped to another region or service: {auth['scope']}")
        want = signature(method, path, query, [(k.lower(), v) for k, v in headers], body, secret, auth)
        if want != auth["signature"]:
            raise Bad(403, "InvalidSignatureException", "The request signature we calculated does not match")
        when = time.mktime(time.strptime(named["x-amz-date"], "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(when - self.now()) > SKEW_MAX:
            raise Bad(403, "InvalidSignatureException", f"Signature expired: {named['x-amz-date']} is now earlier")

    def now(self):
        return time.time() + self.skew

    # --- operations

    def call(self, name, p):
        fn = getattr(self, name, None)
        if not fn:
            raise Bad(501, "NotImplemented", f"the stand-in has no {name}")
        with self.lock:
            self.calls.append((name, p))
            return fn(p)

    def vm(self, p):
        vm = self.vms.get(p["microvmIdentifier"])
        if not vm:
            raise Bad(404, "ResourceNotFoundException", f"MicroVM not found: {p['microvmIdentifier']}")
        return vm

    def RunMicrovm(self, p):
        if p["clientToken"] in self.client_tokens:
            return self.client_tokens[p["clientToken"]]
        if not p["imageIdentifier"].startswith("arn:"):
            raise Bad(400, "ValidationException", "Malformed ARN - doesn't start with 'arn:'")
        if p["imageIdentifier"] != self.image():
            raise Bad(404, "ResourceNotFoundException", f"MicroVMImage not found for MicroVMImageID: {p['imageIdentifier']}")
        managed = f"arn:aws:lambda:{self.region}:aws:network-connector:aws-network-connector:"
        vm = {"egressNetworkConnectors": p.get("egressNetworkConnectors") or [managed + "INTERNET_EGRESS"],
              "endpoint": None, "executionRoleArn": p.get("executionRoleArn"), "idlePolicy": p.get("idlePolicy"),
              "imageArn": p["imageIdentifier"], "imageVersion": p.get("imageVersion", "1.0"),
              "ingressNetworkConnectors": p.get("ingressNetworkConnectors") or [managed + "HTTP_INGRESS"],
              "maximumDurationInSeconds": p.get("maximumDurationInSeconds", 28800),
              "microvmId": f"microvm-{uuid.uuid4()}", "startedAt": round(time.time(), 3), "state": "PENDING",
              "stateReason": None, "terminatedAt": None, "terminationReasonCode": None, "~asked": 0}
        vm["endpoint"] = self.endpoint(vm)
        self.vms[vm["microvmId"]] = vm
        self.client_tokens[p["clientToken"]] = self.shown(vm)
        return self.shown(vm)

    def endpoint(self, vm):
        if not self.backend:
            return "nowhere.invalid"
        server = self.listen(self.backend, vm=vm)
        vm["~server"] = server
        return f"localhost:{server.server_port}"

    @staticmethod
    def shown(vm):
        return {k: v for k, v in vm.items() if k[0] != "~"}

    def GetMicrovm(self, p):
        vm = self.vm(p)
        vm["~asked"] += 1
        if vm["state"] == "PENDING" and vm["~asked"] > self.start_after:
            vm["state"] = vm.get("~becomes", "RUNNING")
            if vm["state"] == "TERMINATED":
                vm["stateReason"] = "Run lifecycle hook returned HTTP status 400. Please check your hook endpoint."
        if vm["state"] in ("SUSPENDING", "TERMINATING") and vm["~asked"] > 1:
            vm["state"] = vm["state"].replace("ING", "ED")
            if vm["state"] == "TERMINATED":
                vm.update(stateReason="Success.", terminatedAt=round(time.time(), 3))
        return self.shown(vm)

    def ListMicrovms(self, p):
        keys = ("imageArn", "imageVersion", "microvmId", "startedAt", "state")
        all_vms = [{k: vm[k] for k in keys} for vm in self.vms.values() if p.get("imageIdentifier") in (None, vm["imageArn"])]
        at = 0
        if "nextToken" in p:
            if not p["nextToken"].endswith("=="):
                raise Bad(400, "", None)
            at = int(p["nextToken"].split("-")[1].rstrip("="))
        size = min(self.page_size, p.get("maxResults", 50))
        if self.empty_pages and "nextToken" not in p:
            return {"items": [], "nextToken": "page-0=="}
        more = at + size < len(all_vms)
        return {"items": all_vms[at:at + size], "nextToken": f"page-{at + size}==" if more else None}

    def SuspendMicrovm(self, p):
        vm = self.vm(p)
        if vm["state"] in ("TERMINATED", "TERMINATING"):
            raise Bad(400, "ValidationException", f"The MicroVM {vm['microvmId']} has been terminated and its state cannot be changed.")
        if vm["state"] == "RUNNING":
            vm.update({"state": "SUSPENDING", "~asked": 0})
        return {}

    def ResumeMicrovm(self, p):
        vm = self.vm(p)
        if vm["state"] in ("TERMINATED", "TERMINATING"):
            raise Bad(400, "ValidationException", f"The MicroVM {vm['microvmId']} has been terminated and its state cannot be changed.")
        vm.update({"state": "RUNNING"})
        return {}

    def TerminateMicrovm(self, p):
        vm = self.vm(p)
        if vm["state"] != "TERMINATED":
            vm.update({"state": "TERMINATING", "~asked": 0})
        if "~server" in vm:
            threading.Thread(target=self.stop, args=(vm.pop("~server"),), daemon=True).start()
        return {}

    def CreateMicrovmAuthToken(self, p):
        vm = self.vm(p)
        if p["expirationInMinutes"] > 60:
            raise Bad(400, "ValidationException", f"ExpirationMinutes {p['expirationInMinutes']} exceeded max allowed of 60.")
        token = "eyJ.." + uuid.uuid4().hex
        self.tokens[token] = (vm["microvmId"], p["allowedPorts"], time.time() + self.token_life)
        return {"authToken": {"X-aws-proxy-auth": token}}

    def allowed(self, token, vm_id, port):
        """The proxy's answer about a token: None, or (status, text)."""
        if token not in self.tokens:
            return 403, "Request missing authentication"
        owner, ports, until = self.tokens[token]
        if owner != vm_id or time.time() > until:
            return 403, "Token authentication failed"
        for spec in ports:
            if spec.get("port") == port or "allPorts" in spec or \
                    ("range" in spec and spec["range"]["startPort"] <= port <= spec["range"]["endPort"]):
                return None
        return 403, "Access to port denied"

    # --- STS and SSO, for credentials

    def sts(self, form):
        action = form["Action"]
        role = self.roles.get(form["RoleArn"])
        if role is None:
            raise Bad(403, "AccessDenied", "User is not authorized to perform: sts:AssumeRole")
        if action == "AssumeRoleWithWebIdentity" and form.get("WebIdentityToken") != role.get("token"):
            raise Bad(400, "InvalidIdentityToken", "No OpenIDConnect provider found")
        if role.get("external_id") != form.get("ExternalId"):
            raise Bad(403, "AccessDenied", "wrong external id")
        self.other.append((action, form))
        return {f"{action}Response": {f"{action}Result": {"Credentials": self.fresh_keys(role.get("life", 3600), True)},
                                      "ResponseMetadata": {"RequestId": "r"}}}

    def fresh_keys(self, life=3600, seconds=False):
        key, secret, token = "ASIA" + uuid.uuid4().hex[:12].upper(), uuid.uuid4().hex, uuid.uuid4().hex + "/+=="
        self.keys[key] = (secret, token)
        until = time.time() + life
        return {"AccessKeyId": key, "SecretAccessKey": secret, "SessionToken": token, "Token": token, "Code": "Success",
                "Expiration": until if seconds else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))}

    @staticmethod
    def stop(server):
        server.shutdown()
        server.server_close()

    def close(self):
        for server in (self.api, self.plain, *(vm["~server"] for vm in self.vms.values() if "~server" in vm)):
            self.stop(server)
        shutil.rmtree(self.dir, ignore_errors=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    aws = None

    def log_message(self, *args):
        pass

    def handle(self):
        self.aws.connections += 1
        super().handle()

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status, doc=None, headers=(), raw=None, kind="application/json"):
        data = raw if raw is not None else b"" if doc is None else json.dumps(doc).encode()
        self.send_response_only(status)
        self.send_header("Date", email.utils.formatdate(self.aws.now(), usegmt=True))
        self.send_header("x-amzn-requestid", "req-" + uuid.uuid4().hex[:8])
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, bad, path, query, body):
        self.aws.refused.append((self.command, path, query, body, bad.status, bad.message))
        if "x-amz-target" in self.headers:
            self.reply(bad.status, {"__type": "com.amazonaws.logs#" + bad.kind, "message": bad.message})
        elif path == "/":
            self.reply(bad.status, {"Error": {"Code": bad.kind, "Message": bad.message, "Type": "Sender"}, "RequestId": "r"})
        else:
            self.reply(bad.status, {"message": bad.message}, [("X-Amzn-Errortype", bad.kind + ":http://x/")] if bad.kind else ())

    def fail(self, f):
        if f.late:
            time.sleep(f.late)
        if f.cut:
            self.close_connection = True
            self.connection.close()
            return
        headers = list(f.headers) + ([("X-Amzn-Errortype", f.kind)] if f.kind else [])
        if isinstance(f.body, bytes):
            self.reply(f.status, raw=f.body, headers=headers, kind="text/html")
        else:
            self.reply(f.status, f.body, headers)

    def answer(self):
        path, _, query = self.path.partition("?")
        body = self.body()
        aws = self.aws
        aws.sent.append((self.command, self.path, dict(self.headers.items())))
        try:
            if path in ("/token", "/federation/credentials"):
                return self.sso(path, query, body)
            if "x-amz-target" in self.headers:
                return self.for_logs(query, body)
            if path == "/":
                form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
                if form.get("Action") != "AssumeRoleWithWebIdentity":
                    aws.verify(self.command, path, query, self.headers.items(), body)
                f = aws.fault(form.get("Action"))
                return self.fail(f) if f else self.reply(200, aws.sts(form))
            aws.verify(self.command, path, query, self.headers.items(), body)
            model = aws.models[path.startswith("/2026-04-04/")]
            name, values = model.read(self.command, path, query, body, self.headers.get("Content-Type"))
            f = aws.fault(name)
            if f:
                return self.fail(f)
            return self.reply(model.operations[name]["http"].get("responseCode", 200), aws.call(name, values))
        except Bad as bad:
            return self.refuse(bad, path, query, body)

    def for_logs(self, query, body):
        aws = self.aws
        aws.verify(self.command, "/", query, self.headers.items(), body)
        if self.headers.get("Content-Type") != "application/x-amz-json-1.1":
            raise Bad(400, "ValidationError", "content type")
        f = aws.fault(self.headers["x-amz-target"].partition(".")[2])
        if f:
            return self.fail(f)
        with aws.lock:
            op, members, answer = aws.logs(self.headers["x-amz-target"], body)
            aws.calls.append((op, members))
        return self.reply(200, answer)

    def sso(self, path, query, body):
        aws = self.aws
        if path == "/token":
            q = json.loads(body)
            aws.other.append(("CreateToken", q))
            if q.get("refreshToken") != "refresh-1" or q.get("grantType") != "refresh_token":
                return self.reply(400, {"error": "invalid_grant"})
            aws.sso_tokens["sso-2"] = True
            return self.reply(200, {"accessToken": "sso-2", "expiresIn": 28800, "refreshToken": "refresh-2", "tokenType": "Bearer"})
        q = dict(urllib.parse.parse_qsl(query))
        aws.other.append(("GetRoleCredentials", q))
        if self.headers.get("x-amz-sso_bearer_token") not in aws.sso_tokens:
            return self.reply(401, {"message": "Session token not found or invalid"},
                              [("x-amzn-ErrorType", "UnauthorizedException:")])
        k = aws.fresh_keys()
        return self.reply(200, {"roleCredentials": {
            "accessKeyId": k["AccessKeyId"], "secretAccessKey": k["SecretAccessKey"], "sessionToken": k["SessionToken"],
            "expiration": int((time.time() + 3600) * 1000)}})

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer


class Metadata(Handler):
    """Plain HTTP: the instance metadata service and a container's endpoint."""

    def answer(self):
        aws, body = self.aws, self.body()
        del body
        aws.other.append((self.command, self.path))
        if self.path == "/container":
            if self.headers.get("Authorization") != aws.container_token:
                return self.reply(403, {"message": "no"})
            return self.reply(200, aws.fresh_keys())
        if self.path == "/latest/api/token" and self.command == "PUT":
            return self.reply(200, raw=b"imds-token", kind="text/plain")
        if self.headers.get("x-aws-ec2-metadata-token") != "imds-token":
            return self.reply(401, raw=b"", kind="text/plain")
        text = {"/latest/meta-data/iam/security-credentials/": "execution_role",
                "/latest/meta-data/placement/region": aws.region}.get(self.path)
        if text:
            return self.reply(200, raw=text.encode(), kind="text/plain")
        if self.path == "/latest/meta-data/iam/security-credentials/execution_role":
            return self.reply(200, {**aws.fresh_keys(), **aws.imds})
        return self.reply(404, raw=b"", kind="text/plain")

    do_GET = do_PUT = do_POST = answer
