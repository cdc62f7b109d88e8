# SPDX-License-Identifier: Apache-2.0
"""An AWS account as far as `asb infra` needs one: IAM, STS, EC2, S3, and the images and connectors of Lambda. Each request is checked
against the service's model and its signature computed anew; what is wrong is refused and kept in `refused`. It forgets nothing and
cleans up nothing: what asb leaves behind can be seen."""
import base64
import hashlib
import http.server
import json
import os
import re
import signal
import threading
import urllib.parse
import uuid
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from cloudwatch import LOADER
from images import ACCOUNT, REGION, Images
from model import Bad, Model, parse_authorization, signature

SECRET = "secret+key/with=signs"
# Classes of Unicode in a model's pattern, as far as asb sends them: Python's expressions do not have them.
UNICODE = {"L": "a-zA-Z", "M": "", "N": "0-9", "P": r"!-#%-*,-/:;?@\[-\]_{}", "S": "$+<=>^`|~", "Z": " "}


class Form:
    """Forms of the query protocol, against botocore's models."""

    def __init__(self, service):
        self.model = LOADER.load_service_model(service, "service-2") if LOADER else None
        self.ec2 = service == "ec2"

    def step(self, shape, word):
        """The shape behind one more WORD of a parameter's name."""
        s = self.model["shapes"][shape]
        if s["type"] == "structure":
            for name, m in s["members"].items():
                if self.ec2:
                    wire = m.get("queryName") or (m["locationName"][:1].upper() + m["locationName"][1:] if "locationName" in m else name)
                else:
                    wire = m.get("locationName", name)
                if wire == word:
                    return m["shape"]
        if s["type"] == "list" and word.isdigit():
            return s["member"]["shape"]
        raise Bad(400, "ValidationError", f"no parameter {word} in {shape}")

    def check(self, values):
        if not self.model:
            return
        op = self.model["operations"].get(values["Action"])
        if not op or values["Version"] != self.model["metadata"]["apiVersion"]:
            raise Bad(400, "InvalidAction", f"{values['Action']} of {values['Version']}")
        top = op.get("input", {}).get("shape")
        for name, value in values.items():
            shape = top
            for word in name.split("."):
                if name in ("Action", "Version"):
                    break
                if word == "member" and not self.ec2:
                    continue
                shape = self.step(shape, word)
            else:
                s = self.model["shapes"][shape]
                pattern = re.sub(r"\\p\{(\w)\}", lambda c: UNICODE[c[1]], s.get("pattern", ".*"))
                if s["type"] not in ("string", "integer", "boolean") or len(value) > s.get("max", len(value)) \
                        or len(value) < s.get("min", 0) or (s["type"] == "string" and not re.fullmatch(pattern, value)):
                    raise Bad(400, "ValidationError", f"{name}={value!r}")
        for m in self.model["shapes"][top].get("required", []) if top else []:
            if not any(k.split(".")[0] in (m, m[:1].upper() + m[1:]) or self.ec2 for k in values):
                raise Bad(400, "ValidationError", f"{m} is missing")


def xml(value):
    if isinstance(value, dict):
        return "".join(f"<{k}>{xml(v)}</{k}>" if not isinstance(v, list) else "".join(f"<{k}>{xml(x)}</{k}>" for x in v)
                       for k, v in value.items())
    return escape(str(value))


class Account(Images):
    def __init__(self):
        self.roles, self.groups, self.buckets, self.images, self.connectors, self.vms = {}, {}, {}, {}, {}, {}
        self.subnets = {"subnet-a": "private-a", "subnet-b": "private-b"}
        self.calls, self.refused = [], []
        self.kill = None    # (pid of asb, after how many more calls): SIGKILL instead of the answer
        self.faults = {}    # operation: [(status, code), …] instead of the next answers
        self.before = {}    # operation: what somebody else does right before it, once
        self.unready = 0    # how often a new role cannot be taken
        self.lambda_models = [Model("lambda-microvms"), Model("lambda-core")]
        self.forms = {s: Form(s) for s in ("iam", "sts", "ec2")}
        self.lock = threading.RLock()
        self.build_fails, self.log = False, []  # (group, stream, ms, message)
        self.together = set()  # names of images: none of them is built before all are asked for
        self.slow = 1       # looks until what was asked for is done; 0: at the first
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.account = self
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def env(self):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_port}", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "NO_PROXY": "127.0.0.1"}

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def left(self):
        return {k: sorted(getattr(self, k)) for k in ("roles", "groups", "buckets", "images", "connectors") if getattr(self, k)}

    # --- IAM

    def role(self, v):
        if v["RoleName"] not in self.roles:
            raise Bad(404, "NoSuchEntity", f"The role with name {v['RoleName']} cannot be found.")
        return self.roles[v["RoleName"]]

    def CreateRole(self, v):
        if v["RoleName"] in self.roles:
            raise Bad(409, "EntityAlreadyExists", "Role exists")
        json.loads(v["AssumeRolePolicyDocument"])
        self.roles[v["RoleName"]] = {"trust": v["AssumeRolePolicyDocument"], "inline": {}, "attached": [], "refusals": self.unready,
                                     "tags": {v["Tags.member.1.Key"]: v["Tags.member.1.Value"]}}
        return self.GetRole(v)

    def GetRole(self, v):
        r = self.role(v)
        return {"Role": {"Arn": f"arn:aws:iam::{ACCOUNT}:role/{v['RoleName']}", "RoleName": v["RoleName"],
                         "AssumeRolePolicyDocument": urllib.parse.quote(r["trust"]),
                         "Tags": {"member": [{"Key": k, "Value": x} for k, x in r["tags"].items()]}}}

    def UpdateAssumeRolePolicy(self, v):
        self.role(v)["trust"] = v["PolicyDocument"]

    def PutRolePolicy(self, v):
        json.loads(v["PolicyDocument"])
        self.role(v)["inline"][v["PolicyName"]] = v["PolicyDocument"]

    def GetRolePolicy(self, v):
        if v["PolicyName"] not in self.role(v)["inline"]:
            raise Bad(404, "NoSuchEntity", "no such policy")
        return {"PolicyDocument": urllib.parse.quote(self.role(v)["inline"][v["PolicyName"]], safe=""), "PolicyName": v["PolicyName"]}

    def DeleteRolePolicy(self, v):
        if not self.role(v)["inline"].pop(v["PolicyName"], None):
            raise Bad(404, "NoSuchEntity", "no such policy")

    def page(self, v, key, all_of):
        """One entry a page, so that the pages are walked."""
        at = int(v.get("Marker", "0"))
        more = at + 1 < len(all_of)
        return {key: {"member": all_of[at:at + 1]}, "IsTruncated": str(more).lower(), **({"Marker": str(at + 1)} if more else {})}

    def ListRolePolicies(self, v):
        return self.page(v, "PolicyNames", sorted(self.role(v)["inline"]))

    def ListAttachedRolePolicies(self, v):
        return self.page(v, "AttachedPolicies", [{"PolicyName": a.split("/")[-1], "PolicyArn": a} for a in self.role(v)["attached"]])

    def AttachRolePolicy(self, v):
        if v["PolicyArn"] not in self.role(v)["attached"]:
            self.role(v)["attached"].append(v["PolicyArn"])

    def DetachRolePolicy(self, v):
        self.role(v)["attached"].remove(v["PolicyArn"])

    def DeleteRole(self, v):
        r = self.role(v)
        if r["inline"] or r["attached"]:
            raise Bad(409, "DeleteConflict", "Cannot delete entity, must remove policies first.")
        del self.roles[v["RoleName"]]

    @staticmethod
    def GetCallerIdentity(_):
        return {"Arn": f"arn:aws:iam::{ACCOUNT}:user/tester", "UserId": "AIDA", "Account": ACCOUNT}

    # --- EC2

    @staticmethod
    def filters(v):
        return {v[f"Filter.{n}.Name"]: v[f"Filter.{n}.Value.1"] for n in range(1, 9) if f"Filter.{n}.Name" in v}

    def DescribeVpcs(self, v):
        return {"vpcSet": {"item": [{"vpcId": "vpc-1", "isDefault": "true"}]} if self.filters(v) == {"is-default": "true"} else ""}

    def DescribeSubnets(self, v):
        f = self.filters(v)
        found = [i for i, n in self.subnets.items() if f.get("tag:Name", n) == n and f["vpc-id"] == "vpc-1"]
        return {"subnetSet": {"item": [{"subnetId": i} for i in found]} if found else ""}

    def DescribeSecurityGroups(self, v):
        f = self.filters(v)
        found = [i for i, g in self.groups.items() if v.get("GroupId.1", i) == i and f.get("group-name", g["name"]) == g["name"]
                 and f.get("tag:agent-sandbox-stack", g["tag"]) == g["tag"]]
        if "GroupId.1" in v and not found:
            raise Bad(400, "InvalidGroup.NotFound", "The security group does not exist")
        return {"securityGroupInfo": {"item": [{"groupId": i} for i in found]} if found else ""}

    def CreateSecurityGroup(self, v):
        if any(g["name"] == v["GroupName"] for g in self.groups.values()):
            raise Bad(400, "InvalidGroup.Duplicate", "exists")
        new = "sg-" + uuid.uuid4().hex[:12]
        self.groups[new] = {"name": v["GroupName"], "tag": v["TagSpecification.1.Tag.2.Value"]}
        return {"groupId": new}

    def DeleteSecurityGroup(self, v):
        if v["GroupId"] not in self.groups:
            raise Bad(400, "InvalidGroup.NotFound", "no such group")
        if any(v["GroupId"] in c["groups"] for c in self.connectors.values()):
            raise Bad(400, "DependencyViolation", "resource has a dependent object")
        del self.groups[v["GroupId"]]
        return {"return": "true"}

    # --- Lambda

    def take_role(self, arn):
        r = self.roles.get(arn.split("/")[-1])
        if not r or r["refusals"] > 0:
            if r:
                r["refusals"] -= 1
            raise Bad(400, "ValidationException", "Lambda was unable to assume the provided role")
        return r

    def ListTags(self, v):
        for x in (*self.images.values(), *self.connectors.values()):
            if x["arn"] == v["Resource"]:
                return {"Tags": x["tags"]}
        raise Bad(404, "ResourceNotFoundException", "no such resource")

    def ListMicrovms(self, v):
        return {"items": [{"microvmId": k, "state": x["state"], "imageArn": x["image"], "imageVersion": x.get("version", "1.0"), "startedAt": 1.0}
                          for k, x in self.vms.items() if x["image"] == v["imageIdentifier"]], "nextToken": None}

    def TerminateMicrovm(self, v):
        self.vms[v["microvmIdentifier"]]["state"] = "TERMINATED"
        return {}

    def connector(self, v):
        for c in self.connectors.values():
            if v["Identifier"] in (c["arn"], c["name"], c["id"]):
                return c
        raise Bad(404, "ResourceNotFoundException", f"Network connector not found for: {v['Identifier']}")

    def CreateNetworkConnector(self, v):
        if any(c["name"] == v["Name"] for c in self.connectors.values()):
            raise Bad(409, "ResourceConflictException", "exists")
        self.take_role(v["OperatorRole"])
        new = "nc-" + str(uuid.uuid4())
        c = {"arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:network-connector:{new}", "name": v["Name"], "id": new, "state": "PENDING", "waits": self.slow,
             "config": v["Configuration"], "role": v["OperatorRole"], "tags": v.get("Tags", {}),
             "groups": v["Configuration"]["VpcEgressConfiguration"]["SecurityGroupIds"]}
        self.connectors[new] = c
        return self.connector_doc(c)

    @staticmethod
    def connector_doc(c):
        return {"Arn": c["arn"], "Name": c["name"], "Id": c["id"], "State": c["state"], "Configuration": c["config"], "OperatorRole": c["role"]}

    def GetNetworkConnector(self, v):
        c = self.connector(v)
        c["waits"] -= 1
        if c["waits"] < 0 and c["state"] == "DELETING":
            del self.connectors[c["id"]]
            return self.connector_doc(self.connector(v))
        if c["waits"] < 0:
            c["state"] = "ACTIVE"
        return self.connector_doc(c)

    def UpdateNetworkConnector(self, v):
        c = self.connector(v)
        c.update(config=v["Configuration"], role=v["OperatorRole"], groups=v["Configuration"]["VpcEgressConfiguration"]["SecurityGroupIds"])
        return self.connector_doc(c)

    def DeleteNetworkConnector(self, v):
        c = self.connector(v)
        c.update(state="DELETING", waits=self.slow)
        return self.connector_doc(c)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # an answer is one segment
    etag = None

    def log_message(self, *_):
        pass

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def serve(self):
        a = self.server.account
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with a.lock:
            service, op, answer = "?", "?", None
            try:
                service = self.check_signature(body)
                op, answer = getattr(self, "for_" + service)(body)
            except Bad as b:
                if b.kind in ("ValidationError", "SignatureDoesNotMatch", "InvalidAction", "BadDigest", "MissingAuthenticationTokenException"):
                    a.refused.append((self.command, self.path, b.kind, b.message))
                answer = b
            if a.kill:
                pid, n = a.kill
                a.kill = (pid, n - 1)
                if n == 0:
                    a.kill = None
                    os.kill(pid, signal.SIGKILL)
                    self.close_connection = True
                    return
        self.answer(service, op, answer)

    def check_signature(self, body):
        auth = parse_authorization(self.headers.get("Authorization"))
        path, _, query = self.path.partition("?")
        heads = [(k.lower(), v) for k, v in self.headers.items()]
        if signature(self.command, path, query, heads, body, SECRET, auth) != auth["signature"]:
            raise Bad(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
        if auth["scope"][1] != ("us-east-1" if auth["scope"][2] == "iam" else REGION):
            raise Bad(403, "SignatureDoesNotMatch", f"signed for {auth['scope']}")
        unsigned = [k for k, _ in heads if k.startswith("x-amz-") and k not in auth["signed"]]
        if unsigned:
            raise Bad(403, "SignatureDoesNotMatch", f"{unsigned} are not signed")
        return auth["scope"][2]

    def run(self, op, values):
        a = self.server.account
        a.calls.append(op)
        if op in a.before:
            a.before.pop(op)()
        if a.faults.get(op):
            status, code = a.faults[op].pop(0)
            raise Bad(status, code, "as the test wants it")
        return op, getattr(a, op)(values)

    def for_lambda(self, body):
        path, _, query = self.path.partition("?")
        model = self.server.account.lambda_models["network-connectors" in path]
        try:
            op, values = model.read(self.command, path, query, body, self.headers.get("Content-Type"))
        except Bad as b:
            self.server.account.refused.append((self.command, self.path, b.kind, b.message))
            raise
        return self.run(op, values)

    def form(self, service, body):
        values = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
        self.server.account.forms[service].check(values)
        return self.run(values["Action"], values)

    def for_iam(self, body):
        op, r = self.form("iam", body)
        return op, {op + "Response": {op + "Result": r, "ResponseMetadata": {"RequestId": "r"}} if r else {"ResponseMetadata": ""}}

    def for_sts(self, body):
        op, r = self.form("sts", body)
        return op, {op + "Response": {op + "Result": r}}

    def for_ec2(self, body):
        op, r = self.form("ec2", body)
        return op, {op + "Response": {"requestId": "r", **r}}

    def for_logs(self, body):
        if self.headers.get("Content-Type") != "application/x-amz-json-1.1":
            raise Bad(400, "ValidationError", "content type")
        op, _, answer = self.server.account.logs(self.headers.get("x-amz-target", ""), body)
        self.server.account.calls.append(op)
        return op, answer

    def for_s3(self, body):
        a = self.server.account
        if self.headers.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
            raise Bad(400, "BadDigest", "x-amz-content-sha256")
        given = self.headers.get("x-amz-checksum-sha256")
        if body and given != base64.b64encode(hashlib.sha256(body).digest()).decode():
            raise Bad(400, "BadDigest", "x-amz-checksum-sha256")
        path, _, query = self.path.partition("?")
        _, bucket, key = path.split("/", 2) if path.count("/") > 1 else (*path.split("/"), "")
        key, b = urllib.parse.unquote(key), a.buckets.get(bucket)
        what = query.partition("=")[0]
        op = f"{self.command} {what or ('object' if key else 'bucket')}"
        a.calls.append(op)
        if a.faults.get(op):
            status, code = a.faults[op].pop(0)
            raise Bad(status, code, "as the test wants it")
        if op == "PUT bucket":
            if REGION.encode() not in body:
                raise Bad(400, "IllegalLocationConstraintException", "elsewhere")
            if b is not None:
                raise Bad(409, "BucketAlreadyOwnedByYou" if b["owner"] == ACCOUNT else "BucketAlreadyExists", "it is there")
            a.buckets[bucket] = {"owner": ACCOUNT, "objects": {}, "versions": [], "settings": {}}
            return op, ""
        if b is None:
            raise Bad(404, "NoSuchBucket", "The specified bucket does not exist")
        if self.headers.get("x-amz-expected-bucket-owner", b["owner"]) != b["owner"]:
            raise Bad(403, "AccessDenied", "Access Denied")
        return op, self.s3(op, b, bucket, key, body, what)

    def s3(self, op, b, bucket, key, body, what):
        if op in ("HEAD bucket", "GET uploads"):
            return "" if op == "HEAD bucket" else {"ListMultipartUploadsResult": {"Upload": [
                {"Key": k, "UploadId": "u/+"} for k in b.get("uploads", [])[:1]], "IsTruncated": str(len(b.get("uploads", [])) > 1).lower()}}
        if op == "DELETE uploadId":
            b["uploads"].remove(key)
            return ""
        if op == "HEAD object":
            if key not in b["objects"]:
                raise Bad(404, "NoSuchKey", "no such key")
            return ""
        if op == "POST uploads":
            b.setdefault("parts", {})[key] = {}
            b.setdefault("uploads", []).append(key)
            return {"InitiateMultipartUploadResult": {"Bucket": bucket, "Key": key, "UploadId": "u/+"}}
        if op == "PUT partNumber":
            q = dict(urllib.parse.parse_qsl(self.path.partition("?")[2], strict_parsing=True))
            if q["uploadId"] != "u/+" or key not in b.get("uploads", []):
                raise Bad(404, "NoSuchUpload", "The specified upload does not exist.")
            b["parts"][key][int(q["partNumber"])] = body
            self.etag = f'"{hashlib.md5(body).hexdigest()}"'
            return ""
        if op == "POST uploadId":
            parts, ns = b["parts"][key], "{http://s3.amazonaws.com/doc/2006-03-01/}"
            named = [(int(x.find(ns + "PartNumber").text), x.find(ns + "ETag").text) for x in ElementTree.fromstring(body).iter(ns + "Part")]
            if named != [(n, f'"{hashlib.md5(parts[n]).hexdigest()}"') for n in sorted(parts)] or any(len(parts[n]) < 5 << 20 for n, _ in named[:-1]):
                raise Bad(400, "ValidationError", f"parts {named}")
            if "complete_fails" in b:
                return {"Error": b.pop("complete_fails")}
            b["uploads"].remove(key)
            b["objects"][key] = b"".join(parts[n] for n in sorted(parts))
            b["versions"].append(key)
            return {"CompleteMultipartUploadResult": {"Bucket": bucket, "Key": key, "ETag": '"x-2"'}}
        if op == "PUT object":
            b["objects"][key] = body
            b["versions"].append(key)
            return ""
        if op == "DELETE object":
            b["objects"].pop(key, None)
            b["versions"] = [k for k in b["versions"] if k != key]
            return ""
        if op == "GET versions":
            return {"ListVersionsResult": {"Name": bucket, "Version": [
                {"Key": k, "VersionId": "null" if k == "null" else f"v{n}"} for n, k in enumerate(b["versions"][:2])], "IsTruncated": len(b["versions"]) > 2}}
        if op == "POST delete":
            for o in ElementTree.fromstring(body).iter("{http://s3.amazonaws.com/doc/2006-03-01/}Object"):
                k = o[0].text
                b["objects"].pop(k, None)
                if len(o) < 2:  # no version is named: a delete marker comes on top
                    b["versions"].append(k)
                else:
                    b["versions"].remove(k)
            return {"DeleteResult": ""}
        if op == "DELETE bucket":
            if b["versions"] or b.get("uploads"):
                raise Bad(409, "BucketNotEmpty", "The bucket you tried to delete is not empty.")
            del self.server.account.buckets[bucket]
            return ""
        if self.command == "PUT" and what in ("publicAccessBlock", "ownershipControls", "encryption", "policy", "lifecycle"):
            b["settings"][what] = body.decode()
            return ""
        raise Bad(400, "ValidationError", f"S3: {op}")

    def answer(self, service, op, answer):
        status, heads = 200, {"x-amzn-requestid": "11111111-2222-3333-4444-555555555555"}
        if isinstance(answer, Bad):
            status = answer.status
            error = {"Code": answer.kind, "Message": answer.message}
            if service == "lambda":
                heads["x-amzn-errortype"] = answer.kind
                text = json.dumps({"message": answer.message})
            elif service == "logs":
                text = json.dumps({"__type": "com.amazonaws.logs#" + answer.kind, "message": answer.message})
            else:
                text = xml({"iam": {"ErrorResponse": {"Error": error, "RequestId": "r"}}, "sts": {"ErrorResponse": {"Error": error}},
                            "ec2": {"Response": {"Errors": {"Error": error}, "RequestID": "r"}}}.get(service, {"Error": error}))
        elif service == "lambda":
            status = next(m for m in self.server.account.lambda_models if op in m.operations).operations[op]["http"].get("responseCode", 200)
            text = json.dumps(answer) if answer is not None else ""
        elif service == "logs":
            text = json.dumps(answer)
        else:
            text = "" if answer == "" else '<?xml version="1.0" encoding="UTF-8"?>\n' + xml(answer)
        data = b"" if self.command == "HEAD" else text.encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json" if service == "lambda" else "text/xml")
            self.send_header("Content-Length", str(len(data)))
            if self.etag:
                heads["ETag"], self.etag = self.etag, None
            for k, v in heads.items():
                self.send_header(k, v)
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass
