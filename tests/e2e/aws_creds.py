#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""Where asb has its AWS credentials from: each source of the chain, by `asb doctor` and a call that is signed with them."""
import hashlib
import json
import os
import stat
import time

from _aws import Cloud, Fault, done, ok, same

ROLE = "arn:aws:iam::123456789012:role/r"


class Sources:
    def __init__(self, cloud):
        self.cloud, self.aws, self.home = cloud, cloud.aws, cloud.home.path
        self.env = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        self.key, self.secret = "AKIDEXAMPLE", cloud.aws.keys["AKIDEXAMPLE"][0]

    def put(self, path, text):
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def config(self, text, credentials=""):
        self.put(".aws/config", text)
        self.put(".aws/credentials", credentials)

    def doctor(self, **env):
        r = self.cloud.call("doctor", "--json", env={**self.env, "AGENT_SANDBOX_BACKEND": "aws", **env})
        text = r.stdout.decode()
        secrets = [s for k in self.aws.keys.values() for s in k if s]
        ok(not any(s in text + r.stderr.decode() for s in secrets), "no secret is shown")
        checks = {c["check"]: (c["status"], c["text"]) for c in json.loads(text)["checks"]}
        return checks.get("aws-creds") or checks.get("aws")

    def works(self, name, source, **env):
        status, text = self.doctor(**env)
        ok(status == "ok" and source in text, f"{name}: {source}", (status, text))
        r = self.cloud.call("ls", "--all", env={**self.env, **env})
        ok(r.returncode == 0 and b"warning" not in r.stderr, f"{name}: a call is signed with them", r.stderr)

    def fails(self, name, why, **env):
        status, text = self.doctor(**env)
        ok(status == "fail" and why in text, f"{name}: {why}", (status, text))


def environment(s):
    s.works("environment", "from environment", AWS_ACCESS_KEY_ID=s.key, AWS_SECRET_ACCESS_KEY=s.secret)
    s.aws.keys["ASIATEMP"] = ("temp-secret", "temp/token+==")
    s.works("with a token", "from environment", AWS_ACCESS_KEY_ID="ASIATEMP", AWS_SECRET_ACCESS_KEY="temp-secret",
            AWS_SESSION_TOKEN="temp/token+==")
    s.fails("half of them", "without AWS_SECRET_ACCESS_KEY", AWS_ACCESS_KEY_ID=s.key)
    s.fails("nothing at all", "no AWS credentials")
    r = s.cloud.call("doctor", "--json", env={**s.env, "AWS_ENDPOINT_URL": ""})
    ok(b"only local sandboxes" in r.stdout and r.returncode == 0, "nothing, and nobody wants AWS: one line", r.stdout)


def profiles(s):
    keys = f"aws_access_key_id = {s.key}\naws_secret_access_key = {s.secret}\n"
    s.config("[default]\nregion = us-east-1\naws_access_key_id = wrong\naws_secret_access_key = wrong\n", f"[default]\n{keys}")
    s.works("the credentials file goes first", "profile default")
    s.config(f"[profile work]\n{keys}")
    s.works("a profile of the config file", "profile work", AWS_PROFILE="work")
    s.fails("one that is not there", "'nope'", AWS_PROFILE="nope")
    s.config("[default]\naws_access_key_id = x\n")
    s.fails("half of its keys", "no aws_secret_access_key")
    process = s.put("bin/creds tool", "#!/bin/sh\necho noise >&2\n[ \"$1\" = 'a b' ] || exit 3\n"
                    f"echo '{{\"Version\":1,\"AccessKeyId\":\"{s.key}\",\"SecretAccessKey\":\"{s.secret}\"}}'\n")
    os.chmod(process, 0o755)
    s.config(f"[default]\ncredential_process = \"{process}\" 'a b'\n")
    s.works("a program", "credential_process")
    s.config(f"[default]\ncredential_process = \"{process}\" other\n")
    s.fails("a program that fails", "noise")
    s.config("[default]\ncredential_process = /bin/echo hello\n")
    s.fails("a program that says something else", "no JSON document of Version 1")
    s.config("[default]\ncredential_process = /nonexistent/tool\n")
    s.fails("a program that is not there", "credential_process")
    s.config("[default]\ncredential_process = \"unfinished\n")
    s.fails("no command line", "no command line")


def roles(s):
    keys = f"aws_access_key_id = {s.key}\naws_secret_access_key = {s.secret}\n"
    s.aws.roles[ROLE] = {}
    s.aws.roles[ROLE + "2"] = {"external_id": "e/x"}
    s.config(f"[profile base]\n{keys}[profile r]\nrole_arn = {ROLE}\nsource_profile = base\n"
             f"[profile r2]\nrole_arn = {ROLE}2\nsource_profile = r\nexternal_id = e/x\nrole_session_name = me\n"
             f"[profile self]\nrole_arn = {ROLE}\nsource_profile = self\n{keys}"
             f"[profile env]\nrole_arn = {ROLE}\ncredential_source = Environment\n"
             f"[profile a]\nrole_arn = {ROLE}\nsource_profile = b\n[profile b]\nrole_arn = {ROLE}\nsource_profile = a\n"
             f"[profile mfa]\nrole_arn = {ROLE}\nsource_profile = base\nmfa_serial = x\n"
             f"[profile none]\nrole_arn = {ROLE}\n[profile denied]\nrole_arn = {ROLE}3\nsource_profile = base\n")
    s.works("a role", f"role {ROLE}", AWS_PROFILE="r")
    s.works("a role by a role", f"role {ROLE}2", AWS_PROFILE="r2")
    same([f.get("RoleSessionName") for a, f in s.aws.other if f.get("ExternalId")][-1:], ["me"], "with its session name and external id")
    s.works("a profile that is its own source", f"role {ROLE}", AWS_PROFILE="self")
    s.fails("source Environment without one", "credential_source = Environment", AWS_PROFILE="env")
    s.fails("a circle", "source_profile", AWS_PROFILE="a")
    s.fails("an MFA device", "MFA", AWS_PROFILE="mfa")
    s.fails("a role without a source", "neither source_profile nor credential_source", AWS_PROFILE="none")
    s.fails("a role that is denied", "not authorized to perform: sts:AssumeRole", AWS_PROFILE="denied")
    token = s.put("token", "web-token\n")
    s.aws.roles[ROLE + "w"] = {"token": "web-token"}
    s.config(f"[default]\nrole_arn = {ROLE}w\nweb_identity_token_file = {token}\n")
    s.works("a web identity of the profile", "web identity")
    s.config("")
    s.works("a web identity of the environment", "web identity", AWS_WEB_IDENTITY_TOKEN_FILE=token, AWS_ROLE_ARN=ROLE + "w")
    s.fails("its token is wrong", "No OpenIDConnect provider", AWS_WEB_IDENTITY_TOKEN_FILE=s.put("bad", "x"), AWS_ROLE_ARN=ROLE + "w")
    s.fails("its token is not there", "cannot read", AWS_WEB_IDENTITY_TOKEN_FILE="/nonexistent", AWS_ROLE_ARN=ROLE + "w")


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def sso(s):
    rest = "sso_account_id = 123456789012\nsso_role_name = Dev\n"
    s.config(f"[default]\nsso_session = corp\n{rest}[sso-session corp]\nsso_start_url = https://corp/start\nsso_region = us-west-2\n")
    cache = ".aws/sso/cache/" + hashlib.sha1(b"corp").hexdigest() + ".json"
    s.fails("nobody has logged in", "aws sso login")
    doc = {"startUrl": "https://corp/start", "region": "us-west-2", "accessToken": "sso-1", "expiresAt": stamp(3600),
           "clientId": "id", "clientSecret": "client-secret", "registrationExpiresAt": stamp(86400), "refreshToken": "refresh-1"}
    s.aws.sso_tokens["sso-1"] = True
    s.put(cache, json.dumps(doc))
    s.works("IAM Identity Center", "SSO role Dev in account 123456789012")
    path = s.put(cache, json.dumps({**doc, "expiresAt": stamp(60), "accessToken": "old"}))
    s.works("a token that is about to expire is renewed", "SSO role Dev")
    with open(path, encoding="utf-8") as f:
        now = json.load(f)
    same((now["accessToken"], now["refreshToken"], now["clientId"], stat.S_IMODE(os.stat(path).st_mode)),
         ("sso-2", "refresh-2", "id", 0o600), "and written back, for its owner alone")
    s.put(cache, json.dumps({**doc, "expiresAt": stamp(-60), "refreshToken": "gone"}))
    s.fails("one that cannot be renewed", "has expired")
    s.put(cache, "{")
    s.fails("a damaged cache", cache)
    s.config(f"[default]\nsso_start_url = https://old/start\nsso_region = us-west-2\n{rest}")
    s.put(".aws/sso/cache/" + hashlib.sha1(b"https://old/start").hexdigest() + ".json",
          json.dumps({"accessToken": "sso-1", "expiresAt": stamp(3600).replace("Z", "UTC")}))
    s.works("the older form", "SSO role Dev")
    s.config("[default]\nsso_session = corp\n[sso-session corp]\nsso_region = x\n")
    s.fails("settings that are not whole", "lacks a part")
    s.config("[default]\nlogin_session = arn:aws:iam::123456789012:user/me\n")
    cache = ".aws/login/cache/" + hashlib.sha256(b"arn:aws:iam::123456789012:user/me").hexdigest() + ".json"
    s.put(cache, json.dumps({"accessToken": {"accessKeyId": s.key, "secretAccessKey": s.secret, "sessionToken": "",
                                             "expiresAt": stamp(600)}}))
    s.works("aws login", "aws login")
    s.put(cache, json.dumps({"accessToken": {"accessKeyId": s.key, "secretAccessKey": s.secret, "expiresAt": stamp(-1)}}))
    s.fails("which is over", "aws login --profile default")


def machine(s):
    s.config("")
    url = s.aws.metadata + "/container"
    s.aws.container_token = "Bearer t"
    s.works("a container", "from container", AWS_CONTAINER_CREDENTIALS_FULL_URI=url, AWS_CONTAINER_AUTHORIZATION_TOKEN="Bearer t")
    s.works("its token in a file", "from container", AWS_CONTAINER_CREDENTIALS_FULL_URI=url,
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=s.put("ct", "Bearer t\n"), AWS_CONTAINER_AUTHORIZATION_TOKEN="no")
    s.fails("a wrong token", "HTTP 403", AWS_CONTAINER_CREDENTIALS_FULL_URI=url, AWS_CONTAINER_AUTHORIZATION_TOKEN="x")
    for bad in ("http://example.com/x", "http://127.0.0.1.example.com/", "http://localhost@example.com/", "ftp://localhost/"):
        s.fails("where none may be asked", "allowed URL", AWS_CONTAINER_CREDENTIALS_FULL_URI=bad)
    imds = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": s.aws.metadata}
    s.works("an instance", "instance role execution_role", **imds)
    s.works("its region", "instance role", **imds, AWS_REGION="", AWS_DEFAULT_REGION="")
    s.aws.imds = {"Code": "Failed", "AccessKeyId": None, "SecretAccessKey": None}
    s.fails("an instance without credentials", "gives no AccessKeyId", **imds)
    s.aws.imds = {}
    s.fails("switched off", "no AWS credentials", **{**imds, "AWS_EC2_METADATA_DISABLED": "true"})
    s.fails("nobody there", "no AWS credentials", **{**imds, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"})
    s.fails("an endpoint that is no URL", "no AWS credentials", **{**imds, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "httpd"})
    before = len(s.aws.other)
    s.aws.faults.append(Fault("ListMicrovms", status=403, kind="ExpiredTokenException", body={"message": "expired"}))
    r = s.cloud.call("ls", "-a", env={**s.env, **imds})
    ok(r.returncode == 0 and b"warning" not in r.stderr and len(s.aws.other) - before >= 6, "expired ones are fetched anew, once", r.stderr)


def endpoints(s):
    """Where calls go, and whom they trust."""
    keys = f"aws_access_key_id = {s.key}\naws_secret_access_key = {s.secret}\n"
    env = {**s.env, "AWS_ENDPOINT_URL": ""}
    s.config(f"[default]\n{keys}region = us-east-1\nca_bundle = {s.aws.ca}\nservices = own\n[services own]\nlambda_microvms =\n"
             f"  endpoint_url = {s.aws.url}\n")
    r = s.cloud.call("ls", "-a", env={**env, "AWS_REGION": "", "AWS_CA_BUNDLE": ""})
    ok(r.returncode == 0 and b"warning" not in r.stderr, "all of it from the profile", r.stderr)
    def warns(text, **more):
        r = s.cloud.call("ls", "-a", env={**env, **more})
        ok(text in r.stderr, f"ls: {text.decode()}", r.stderr)
    if os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
        warns(b"trust anchor", AWS_CA_BUNDLE="/etc/ssl/certs/ca-certificates.crt")
    warns(b"cannot read the certificates", AWS_CA_BUNDLE="/nonexistent")
    warns(b"not an endpoint", AWS_ENDPOINT_URL_LAMBDA_MICROVMS="localhost:1")
    warns(b"FIPS", AWS_USE_FIPS_ENDPOINT="true")
    warns(b"is not a region", AWS_REGION="us_east/1")
    warns(b"127.0.0.1", AWS_ENDPOINT_URL_LAMBDA_MICROVMS="http://127.0.0.1:1", AWS_MAX_ATTEMPTS="1")


with Cloud(guest=False) as c:
    sources = Sources(c)
    environment(sources)
    profiles(sources)
    roles(sources)
    sso(sources)
    machine(sources)
    endpoints(sources)
done()
