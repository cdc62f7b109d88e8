#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""asb and a server of S3 that is not ours: the npm package s3rver. One PUT, parts over 16 MiB, HEAD, DELETE, as asb image build and prune send
them; the rest of the account is the stand-in.

s3rver 3.7.1 is of 2021. It parses signatures of version 4 and knows the access key, but does not compute them anew (tests/aws/account.py does,
for the same requests), and x-amz-checksum-sha256 and x-amz-expected-bucket-owner are headers that it does not know. It does check the order of
parts and their ETags, and keeps what it is sent as files, in which this looks."""
import hashlib
import os
import re
import subprocess
import threading
import zipfile

from _asb import done, ok, same, skip_all
from _account import ACCOUNT, REGION, AccountHome
from _mcp import NODE, NPM, official

GOOD = b"FROM public.ecr.aws/lambda/microvms:al2023-minimal\nENTRYPOINT [\"/asb-init\"]\n"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/build"
ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:microvm-image:app"
BUCKET = "artefacts"

if official():
    skip_all(official())


class S3rver:
    """`url`, `folder` with what it keeps."""

    def __init__(self, folder):
        self.folder = folder
        self.p = subprocess.Popen([NODE, os.path.join(NPM, "s3rver/bin/s3rver.js"), "-d", folder, "-a", "127.0.0.1", "-p", "0",
                                   "--configure-bucket", BUCKET], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.url = None
        late = threading.Timer(60, self.p.kill)
        late.start()
        for line in self.p.stdout:
            found = re.search(r"listening on 127.0.0.1:(\d+)", line)
            if found:
                self.url = f"http://127.0.0.1:{found[1]}"
                break
        late.cancel()
        threading.Thread(target=self.p.stdout.read, daemon=True).start()

    def objects(self):
        """Key: path of the bytes."""
        top = os.path.join(self.folder, BUCKET)
        found = [os.path.join(d, n) for d, _, names in os.walk(top) for n in names if n.endswith("._S3rver_object")]
        return {os.path.relpath(f, top)[:-len("._S3rver_object")]: f for f in found}

    def uploads(self):
        """Files of uploads that are not over."""
        return [os.path.join(d, n) for d, _, names in os.walk(os.path.join(self.folder, BUCKET)) for n in names
                if ".S3rver_uploads" in d or "uploads" in os.path.relpath(d, self.folder)]

    def close(self):
        self.p.terminate()
        self.p.wait(20)


class Seen(dict):
    """The stand-in's objects of the bucket: what s3rver has."""

    def __init__(self, s3):
        super().__init__()
        self.s3 = s3

    def __contains__(self, key):
        return key in self.s3.objects()


def main():
    with AccountHome(AWS_REGION=REGION, AGENT_SANDBOX_BACKEND="aws", AWS_ACCESS_KEY_ID="S3RVER") as s:
        s3 = S3rver(os.path.join(s.home.path, "s3"))
        try:
            if ok(s3.url is not None, "s3rver answers"):
                s.aws.buckets[BUCKET] = {"owner": ACCOUNT, "objects": Seen(s3), "versions": [], "settings": {}}
                s.aws.roles["build"] = {"refusals": 0}
                s.aws.slow = 0
                s.home.env["AWS_ENDPOINT_URL_S3"] = s3.url
                walk(s, s3)
        finally:
            s3.close()


def build(s, *args):
    return s.home.call("image", "build", "guest", "--name", "app", "--bucket", BUCKET, "--role", ROLE, *args, cwd=s.home.path)


def walk(s, s3):
    s.write("guest/Dockerfile", GOOD)
    r = build(s)
    same((r.returncode, r.stdout), (0, b"app:1\n"), "one PUT")
    one, = s3.objects()
    with open(s3.objects()[one], "rb") as f:
        data = f.read()
    same(one, f"microvm-images/app-{hashlib.sha256(data).hexdigest()[:16]}.zip", "the bytes are those that its name is the hash of")
    before = os.stat(s3.objects()[one]).st_mtime_ns
    same(build(s, "--rebuild").stdout, b"app:2\n", "HEAD finds it")
    same(os.stat(s3.objects()[one]).st_mtime_ns, before, "so that it is not sent again")

    big = os.urandom(18 << 20)
    s.write("guest/big file+%", big)
    r = build(s)
    same((r.returncode, r.stdout), (0, b"app:3\n"), "18 MiB in parts")
    two, = set(s3.objects()) - {one}
    with zipfile.ZipFile(s3.objects()[two]) as z:
        ok(z.read("big file+%") == big and z.testzip() is None, "arrive whole")
    with open(s3.objects()[two], "rb") as f:
        same(f"microvm-images/app-{hashlib.file_digest(f, 'sha256').hexdigest()[:16]}.zip", two, "in their order")
    same(s3.uploads(), [], "and no part of an upload is left")

    r = s.home.call("image", "build", "guest", "--name", "app", "--bucket", "nowhere", "--role", ROLE, "--rebuild", cwd=s.home.path)
    ok(r.returncode == 1 and b"NoSuchBucket" in r.stderr, "a bucket that is not there is told by its code", r.stderr)
    r = s.home.call("image", "prune", "-f", cwd=s.home.path)
    same((r.returncode, r.stdout.decode().splitlines()), (0, ["removed image app:1", "removed image app:2", f"removed artefact s3://{BUCKET}/{one}"]), "DELETE")
    same(list(s3.objects()), [two], "and it is gone")


main()
done()
