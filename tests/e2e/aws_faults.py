#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""What goes wrong between asb and AWS: what is tried again and what is not, a clock that is wrong, answers that are no answers."""
import json
import os
import signal
import subprocess
import time

from _aws import IMAGE, Cloud, Fault, done, ok, same, until

HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


def attempt(cloud, name, attempts, text, *faults, good=False, words=("inspect", "app"), env=None, since=None):
    cloud.aws.faults[:] = list(faults)
    cloud.aws.sent.clear()
    began = time.monotonic()
    r = cloud.call(*words, env=env)
    took = time.monotonic() - began
    cloud.aws.faults.clear()
    ok((r.returncode == 0) == good and text in r.stderr and b"<html" not in r.stderr, f"{name}: {text.decode() or 'fine'}", r.stderr)
    same(len(cloud.aws.sent), attempts, f"{name}: {attempts} attempts")
    if since is not None:
        ok(took >= since, f"{name}: waited for", took)


def retries(cloud):
    attempt(cloud, "500 twice", 3, b"", Fault(status=500, kind="InternalServerException", body={"message": None}, times=2), good=True)
    attempt(cloud, "500 for ever", 3, b"InternalServerException, HTTP 500, request req-",
            Fault(status=500, kind="InternalServerException", body={"message": "oops"}, times=9))
    attempt(cloud, "one attempt", 1, b"oops", Fault(status=500, kind="InternalServerException", body={"message": "oops"}, times=9),
            env={"AWS_MAX_ATTEMPTS": "1"})
    attempt(cloud, "a gateway's page", 2, b"", Fault(status=502, body=HTML), good=True)
    attempt(cloud, "a gateway's page for ever", 3, b"HTTP 502", Fault(status=502, body=HTML, times=9))
    attempt(cloud, "throttled", 2, b"", Fault(status=429, kind="ThrottlingException", body={"message": "slow"},
                                             headers=[("Retry-After", "1")]), good=True, since=1)
    attempt(cloud, "cut connections", 3, b"", Fault(cut=True, times=2), good=True)
    attempt(cloud, "a quota", 1, b"HTTP 402", Fault(status=402, kind="ServiceQuotaExceededException", body={"message": None}, times=9))
    attempt(cloud, "no reason", 1, b"the answer gives no reason (AccessDeniedException, HTTP 403",
            Fault(status=403, kind="AccessDeniedException", body={"message": None}, times=9))
    attempt(cloud, "capital letters", 1, b"not authorized to perform",
            Fault(status=403, kind="AccessDeniedException", body={"Message": "User is not authorized to perform: lambda:GetMicrovm"}, times=9))
    attempt(cloud, "a type with a name space", 1, b"(ConflictException, HTTP 409",
            Fault(status=409, body={"__type": "com.amazonaws#ConflictException", "message": "busy"}, times=9))
    attempt(cloud, "a page instead of a document", 1, b"no JSON", Fault(status=200, body=HTML, times=9))
    attempt(cloud, "another type", 1, b"state is of another type", Fault(status=200, body={"state": 5}, times=9))
    attempt(cloud, "a redirect", 1, b"HTTP 307", Fault(status=307, body={}, headers=[("Location", "http://localhost:1/")], times=9))
    attempt(cloud, "no answer", 1, b"", Fault(status=200, late=0.5, body={"state": "RUNNING"}), good=True)


def control(cloud):
    """Text of AWS on a terminal."""
    attempt(cloud, "an escape", 1, b"x?[31m", Fault(status=400, kind="ValidationException", body={"message": "x\x1b[31m"}, times=9))
    attempt(cloud, "a header of many kilobytes", 1, b"HTTP 400", Fault(status=400, kind="V" * 5000, body={"message": "m"}, times=9))


def clock(cloud):
    for skew in (3600, -7200):
        cloud.aws.skew = skew
        cloud.aws.sent.clear()
        r = cloud.call("inspect", "app")
        same((r.returncode, len(cloud.aws.sent)), (0, 2), f"a clock that is {skew} s off is corrected once")
    cloud.aws.skew = 0
    attempt(cloud, "a signature that is wrong", 1, b"does not match", words=("inspect", "app"), env={"AWS_SECRET_ACCESS_KEY": "wrong"})


def pages(cloud):
    aws = cloud.aws
    original = aws.ListMicrovms
    aws.ListMicrovms = lambda p: {"items": [], "nextToken": "same=="}
    r = cloud.call("ls")
    ok(r.returncode == 0 and b"for ever" in r.stderr, "a list without an end is noticed", r.stderr)
    aws.ListMicrovms = original
    many = [aws.RunMicrovm({"clientToken": str(i), "imageIdentifier": IMAGE})["microvmId"] for i in range(120)]
    aws.calls.clear()
    rows = json.loads(cloud.call("ls", "-a", "--json").stdout)["sandboxes"]
    same((len(rows), aws.count("ListMicrovms")), (121, 3), "121 sandboxes by three calls")
    for vm in many:
        aws.vms.pop(vm)


def connections(cloud):
    before = cloud.aws.connections
    cloud.call("stop", "app")
    same(cloud.aws.connections - before, 1, "the calls of one command go over one connection")
    cloud.call("start", "app")


def interrupted(cloud):
    """Ctrl-C while AWS does not answer."""
    aws = cloud.aws
    role = "arn:aws:iam::123456789012:role/build"
    with open(os.path.join(cloud.home.top, "Dockerfile"), "w", encoding="ascii") as f:
        f.write("FROM x\nCMD x\n")
    cloud.call("stop", "app")
    create = ("create", "other", "--image", "guest", "--backend", "aws")
    build = ("image", "build", cloud.home.top, "--name", "x", "--bucket", "b", "--role", role, "--backend", "aws")
    for what, op, words in (("a resumption", "ResumeMicrovm", ("start", "app")), ("waiting", "GetMicrovm", ("wait", "app")),
                            ("the look for an image", None, create), ("a build", None, build)):
        late = Fault(op, late=120, times=9)
        aws.faults[:] = [late]
        child = cloud.home.start(*words)
        until(lambda: late.times < 9 or child.poll() is not None, 60)
        child.send_signal(signal.SIGINT)
        try:
            err = child.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            child.kill()
            err = child.communicate()[1]
        same(child.returncode, -signal.SIGINT, f"{what} can be interrupted: {err[-200:]}")
    aws.faults.clear()
    same(list(cloud.state()), ["app"], "and leaves no name")


with Cloud() as c:
    same(c.call("create", "app", "--image", IMAGE).returncode, 0, "a sandbox")
    retries(c)
    control(c)
    clock(c)
    pages(c)
    connections(c)
    interrupted(c)
    same(c.call("rm", "app").returncode, 0, "rm")
done()
