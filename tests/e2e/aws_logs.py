#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""The log of a sandbox on AWS, from a stand-in for CloudWatch; and the output of its commands, which the agent has."""
import json
import os
import select
import signal
import time

import _mcp
from _asb import skip
from _aws import IMAGE, Cloud, Fault, done, ok, same, until
from cloudwatch import LOGS

if not LOGS:
    skip("requests to CloudWatch Logs against their model", "python3-botocore is missing (deps/apt-check.txt)")

ROLE = "arn:aws:iam::123456789012:role/sandbox"
GROUP = "/aws/lambda-microvms/guest"
NOON = 1796040000000  # 2026-11-30T12:00:00Z


def place(vm):
    return time.strftime("%Y/%m/%d", time.gmtime(vm["startedAt"])) + f"[{vm['imageVersion']}]{vm['microvmId']}"


def write(cloud, *messages, group=GROUP, name="app", at=NOON):
    for n, text in enumerate(messages):
        cloud.aws.log.append((group, place(cloud.vm(name)), at + n * 1000, text))


def refused(cloud):
    r = cloud.call("logs", "app")
    ok(r.returncode == 1 and GROUP.encode() in r.stderr and place(cloud.vm()).encode() in r.stderr and b"role" in r.stderr,
       "nothing is there yet: where asb looked, and what may be wrong", r.stderr)
    write(cloud, "of another one", name="other")
    r = cloud.call("logs", "app")
    ok(r.returncode == 1 and b"there is no log" in r.stderr and not r.stdout, "a group without its stream", r.stderr)
    cloud.aws.calls.clear()
    r = cloud.call("logs", "bare")
    ok(r.returncode == 1 and b"without a role" in r.stderr and b"--role" in r.stderr, "no role, no log", r.stderr)
    same([op for op, _ in cloud.aws.calls if op == "GetLogEvents"], [], "and CloudWatch is not asked")
    cloud.aws.faults.append(Fault("GetLogEvents", times=9, status=400, body={
        "__type": "AccessDeniedException", "message": "User: arn:aws:iam::1:user/u is not authorized to perform: logs:GetLogEvents"}))
    r = cloud.call("logs", "app", "--json")
    cloud.aws.faults.clear()
    e = json.loads(r.stdout)["error"]
    ok(r.returncode == 1 and e["code"] == "denied" and GROUP in e["message"] and "not authorized to perform: logs:GetLogEvents" in e["message"],
       "who may not read is told so", r.stdout)
    r = cloud.call("logs", "app", "--log-group", "a b")
    ok(r.returncode == 1 and b"'a b' is not the name of a log group" in r.stderr, "a bad group", r.stderr)
    vm = cloud.aws.vms.pop(cloud.state()["app"]["microvm_id"])
    r = cloud.call("logs", "app")
    ok(r.returncode == 1 and b"no log of 'app'" in r.stderr, "a MicroVM that AWS has forgotten", r.stderr)
    cloud.aws.vms[vm["microvmId"]] = vm


def reads(cloud):
    write(cloud, "one", "two\n", "three\nfour", "", "f\u00fcnf", "six", "seven")
    text = "one\ntwo\nthree\nfour\n\nf\u00fcnf\nsix\nseven\n"
    r = cloud.call("logs", "app")
    same((r.returncode, r.stdout.decode()), (0, text), "all pages, line by line")
    same(json.loads(cloud.call("logs", "app", "--json").stdout), {"name": "app", "log": text}, "--json")
    r = cloud.call("logs", "app", "--timestamps", "--tail", "2")
    same(r.stdout, b"2026-11-30T12:00:05.000000Z six\n2026-11-30T12:00:06.000000Z seven\n", "--timestamps")
    cloud.aws.calls.clear()
    same(cloud.call("logs", "app", "-n", "4").stdout.decode(), "\nf\u00fcnf\nsix\nseven\n", "--tail is read from the end, over pages")
    asked = [p for op, p in cloud.aws.calls if op == "GetLogEvents"]
    same([p.get("limit") for p in asked], [4, 1], "and no more than that")
    same(cloud.call("logs", "app", "-n", "100").stdout.decode(), text, "--tail of more than there is")
    cloud.aws.calls.clear()
    same(cloud.call("logs", "app", "--since", "2026-11-30T12:00:05Z").stdout, b"six\nseven\n", "--since")
    same({p["startTime"] for op, p in cloud.aws.calls if op == "GetLogEvents"}, {NOON + 5000}, "AWS leaves out what is older")
    write(cloud, "elsewhere", group="my/own.group")
    same(cloud.call("logs", "app", "--log-group", "my/own.group").stdout, b"elsewhere\n", "--log-group")
    cloud.aws.faults.append(Fault("GetLogEvents", status=400, body={"__type": "ThrottlingException", "message": "Rate exceeded"}))
    same(cloud.call("logs", "app").stdout.decode(), text, "a throttled page is asked for again")


def lines(child, n, limit=60):
    """N lines of its output, or what there is of them at the deadline."""
    got = b""
    end = time.monotonic() + limit
    while got.count(b"\n") < n and time.monotonic() < end:
        if select.select([child.stdout], [], [], 0.5)[0]:
            piece = os.read(child.stdout.fileno(), 65536)
            if not piece:
                break
            got += piece
    return got


def looking(cloud, *words):
    """`asb logs app WORDS` that has looked once."""
    aws = cloud.aws
    before = aws.count("GetLogEvents") + len(aws.refused)
    child = cloud.home.start("logs", "app", *words)
    until(lambda: aws.count("GetLogEvents") + len(aws.refused) > before, 60, 0.05)
    return child


def follows(cloud):
    child = cloud.home.start("logs", "app", "-f", "-n", "1")
    same(lines(child, 1), b"seven\n", "-f begins with what there is")
    write(cloud, "eight", at=NOON + 60000)
    same(lines(child, 1), b"eight\n", "and goes on")
    big = [f"{n} " + "x" * 50000 for n in range(40)]
    write(cloud, *big, at=NOON + 120000)
    want = "".join(x + "\n" for x in big).encode()
    same(len(lines(child, 40)), len(want), "2 MB at once")
    write(cloud, "nine", at=NOON + 159000)  # the moment of the last one
    same(lines(child, 1), b"nine\n", "what was shown is dropped, and nothing is lost or told twice")
    vm = cloud.vm()
    vm.update(state="TERMINATED", stateReason="Container Stopped with Exit Code: 1")
    time.sleep(0.1)
    write(cloud, "last words", at=NOON + 400000)
    out, err = child.communicate(timeout=60)
    same((child.returncode, out, err), (0, b"last words\n", b""), "the end of the MicroVM is the end, and what is logged late is there")
    same(cloud.call("logs", "app", "-n", "1").stdout, b"last words\n", "the log of one that has ended")
    vm.update(state="RUNNING", stateReason=None)
    cloud.aws.log.clear()
    child = looking(cloud, "-f")
    write(cloud, "first")
    same(lines(child, 1), b"first\n", "-f waits for a log that is not there yet")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    same(child.returncode, -signal.SIGINT, "Ctrl-C")
    child = looking(cloud, "-f", "-n", "0")
    write(cloud, "second", at=NOON + 500000)
    same(lines(child, 1), b"second\n", "-n 0 shows what is new")
    child.kill()
    child.communicate(timeout=60)
    cloud.aws.log.clear()
    child = looking(cloud, "-f", "-n", "1")
    with cloud.aws.lock:
        write(cloud, "a", "b", "c", at=NOON + 600000)
    same(lines(child, 3), b"a\nb\nc\n", "of a log that was not there, all is new")
    child.kill()
    child.communicate(timeout=60)


def of_commands(cloud):
    r = cloud.call("exec", "app", "-d", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    exec_id = r.stdout.decode().strip()
    r = cloud.call("logs", "app", exec_id[:8], "-f")
    same((r.returncode, r.stdout, r.stderr), (0, b"out\n", b"err\n"), "the output of a command that has ended")
    doc = json.loads(cloud.call("logs", "app", exec_id, "--json").stdout)
    same((doc["stdout"], doc["stderr"]), ("out\n", "err\n"), "--json")
    r = cloud.call("exec", "app", "-d", "--", "sh", "-c", "seq 100")
    exec_id = r.stdout.decode().strip()
    cloud.call("logs", "app", exec_id, "-f")
    same(cloud.call("logs", "app", exec_id, "-n", "2").stdout, b"99\n100\n", "--tail")
    r = cloud.call("logs", "app", exec_id, "--log-group", "g")
    ok(r.returncode == 2 and b"--log-group" in r.stderr, "a command has no log group", r.stderr)
    r = cloud.call("logs", "app", "ffff")
    ok(r.returncode == 1 and b"asb execs app" in r.stderr, "one that does not exist", r.stderr)
    cloud.vm()["state"] = "SUSPENDED"
    same(cloud.call("logs", "app", exec_id, "-n", "1").stdout, b"100\n", "a suspended MicroVM goes on for it")


def by_mcp(cloud):
    cloud.aws.log.clear()
    write(cloud, *[f"line {n}" for n in range(10)])
    write(cloud, "elsewhere", group="my/own.group")
    with _mcp.Server(cloud.home, "--backend", "aws") as s:
        d = s.data("sandbox_logs_read", name="app", tail=2)
        same((d["count"], "line 9" in d["logs"]["text"], "line 7" in d["logs"]["text"]), (2, True, False), "sandbox_logs_read, the last lines")
        d = s.data("sandbox_logs_read", name="app", grep="line 1", tail=5)
        same((d["count"], "line 1" in d["logs"]["text"]), (1, True), "grep looks at all lines, not at the last ones")
        d = s.data("sandbox_logs_read", name="app", log_group="my/own.group")
        same((d["log_group"], "elsewhere" in d["logs"]["text"]), ("my/own.group", True), "log_group")
        same(s.error("sandbox_logs_read", name="bare")["code"], "not_found", "one that has none")
        d = s.data("sandbox_logs_stream", name="app", cursor="2026-11-30T12:00:07.000000Z/1", follow_timeout_ms=0)
        same((d["count"], "line 8" in d["logs"]["text"]), (2, True), "sandbox_logs_stream goes on behind its cursor")
        d = s.data("sandbox_logs_stream", name="app", cursor=d["cursor"], follow_timeout_ms=0)
        same(d["count"], 0, "nothing is new")
        write(cloud, "at the same moment", at=NOON + 9000)
        d = s.data("sandbox_logs_stream", name="app", cursor=d["cursor"], follow_timeout_ms=30000)
        same((d["count"], "at the same moment" in d["logs"]["text"]), (1, True), "a line of the same moment")


with Cloud() as c:
    for name, more in (("app", ["--role", ROLE]), ("other", ["--role", ROLE]), ("bare", [])):
        same(c.call("create", name, "--image", IMAGE, *more).returncode, 0, "a sandbox")
    refused(c)
    reads(c)
    follows(c)
    of_commands(c)
    by_mcp(c)
    same([x for x in c.aws.refused if x[5] and "MicroVM not found" not in x[5] and "does not exist" not in x[5]], [],
         "every request was as the service takes it")
done()
