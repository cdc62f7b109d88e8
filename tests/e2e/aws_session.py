#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""Long work in a sandbox on AWS: a shell on a terminal, commands that are listed, waited for and signalled, and metrics; through the
proxy that behaves as AWS's."""
import json
import os
import signal
import time

from _aws import ASB, IMAGE, Cloud, done, ok, same, until
from _term import Term


def detached(cloud, *words):
    return cloud.call("exec", "app", "-d", "--", *words).stdout.decode().strip()


def shell(cloud):
    cloud.aws.calls.clear()
    t = Term([ASB, "shell", "app"], cloud.home.env, rows=31, cols=97)
    t.type("echo in-$((1+0))\r")
    ok(t.wait("in-1\r\n"), "a shell", t.seen)
    same(t.canonical(), False, "our terminal is raw meanwhile")
    t.type("stty size; tty\r")
    ok(t.wait("31 97\r\n/dev/pts/"), "it has a terminal of our size", t.seen)
    t.size(20, 50)
    os.kill(t.pid, signal.SIGWINCH)
    t.type("sleep 1; stty size\r")
    ok(t.wait("\r20 50\r\n"), "which follows ours", t.seen)
    t.type("echo beg; sleep 100; echo never-$((1+1))\r")
    t.wait("beg\r\n")
    t.type("\x03")
    t.type("echo after-$((1+1))\r")
    ok(t.wait("after-2\r\n") and b"never-2" not in t.seen, "Ctrl-C is the command's", t.seen)
    cloud.proxy.faults.extend(["502", "cut", "403"])
    t.type("echo cut-$((2+1))\r")
    ok(t.wait("cut-3\r\n"), "cut connections and refusals in the middle", t.seen)
    cloud.proxy.faults.clear()
    cloud.aws.tokens.clear()
    t.type("echo renewed-$((2+2))\r")
    ok(t.wait("renewed-4\r\n"), "a token that has come to its end", t.seen)
    t.type("\x10\x11")
    t.end()
    ok(t.status == 0 and b"--attach" in t.seen, "detach keys leave it running", t.seen)
    exec_id = json.loads(cloud.call("execs", "app", "--json").stdout)["execs"][0]["id"]
    t = Term([ASB, "exec", "app", "--attach", exec_id], cloud.home.env)
    t.type("echo back-$((2+3))\r")
    ok(t.wait("back-5\r\n"), "and one comes back to it", t.seen)
    t.type("exit 5\r")
    t.end(close=False)
    same((t.status, t.canonical()), (5, True), "its status is ours, and the terminal as before")
    os.close(t.fd)
    t = Term([ASB, "shell", "app"], cloud.home.env)
    t.type("echo up-$((3+3))\r")
    t.wait("up-6\r\n")
    same(t.hang_up(), -signal.SIGHUP, "a terminal that is closed")
    until(lambda: not any(x["state"] == "running" for x in listed(cloud)), 60)
    same([x["state"] for x in listed(cloud) if x["state"] == "running"], [], "hangs up the shell")


def listed(cloud):
    return json.loads(cloud.call("execs", "app", "--json").stdout)["execs"]


def execs(cloud):
    one = detached(cloud, "sh", "-c", "echo one; exec sleep 300")
    two = detached(cloud, "sh", "-c", "exit 3")
    cloud.call("wait", "app", two)
    r = cloud.call("execs", "app", "--no-trunc")
    lines = {x.split()[0]: x for x in r.stdout.decode().splitlines()}
    ok("running" in lines[one] and "exited 3" in lines[two] and "echo one" in lines[one], "execs", r.stdout)
    ids = cloud.call("execs", "app", "-q").stdout.decode().split()
    ok(one in ids and two in ids, "-q", ids)
    r = cloud.call("kill", "app", one[:10], "TERM")
    same((r.returncode, r.stdout.decode()), (0, one + "\n"), "kill, by the begin of its id")
    same(cloud.call("wait", "app", one).stdout, b"143\n", "wait tells what it was ended by")
    r = cloud.call("kill", "app", one)
    ok(r.returncode == 1 and b"has ended" in r.stderr, "one that has ended", r.stderr)
    r = cloud.call("kill", "app", "ffffffff")
    ok(r.returncode == 1 and b"asb execs app" in r.stderr, "one that is not there", r.stderr)
    tree = detached(cloud, "sh", "-c", "trap '' TERM; sleep 300 & sleep 300; wait")
    same(json.loads(cloud.call("kill", "app", tree, "--json", "-s", "KILL").stdout)["name"], "KILL", "kill --json")
    doc = json.loads(cloud.call("wait", "app", tree, "--json").stdout)
    same((doc["status"], doc["exec"]["signal"]), (137, 9), "wait --json")
    cloud.proxy.faults.extend(["502", "403"])
    same(cloud.call("execs", "app", "-q").returncode, 0, "over a proxy that stumbles")
    cloud.proxy.faults.clear()


def waits(cloud):
    slow = detached(cloud, "sh", "-c", "sleep 2; exit 4")
    child = cloud.home.start("wait", "app", slow)
    out, err = child.communicate(timeout=60)
    same((child.returncode, out), (0, b"4\n"), "wait for a command")
    same(cloud.call("wait", "app", slow).stdout, b"4\n", "that has ended already")
    long = detached(cloud, "sleep", "300")
    r = cloud.call("wait", "app", long, "--timeout", "1")
    ok(r.returncode == 124 and b"has not ended" in r.stderr, "--timeout", r.stderr)
    child = cloud.home.start("wait", "app", long)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    same(child.returncode, -signal.SIGINT, "Ctrl-C")
    cloud.call("kill", "app", long)
    r = cloud.call("wait", "app", "--timeout", "1")
    same(r.returncode, 124, "the sandbox runs")
    child = cloud.home.start("wait", "app", "--json")
    time.sleep(0.5)
    cloud.vm().update(state="TERMINATED", stateReason="Container Stopped with Exit Code: 1")
    doc = json.loads(child.communicate(timeout=60)[0])
    same((child.returncode, doc["state"], doc["reason"]), (0, "TERMINATED", "Container Stopped with Exit Code: 1"), "and its end, with AWS's reason")
    cloud.vm().update(state="RUNNING", stateReason=None)


def metrics(cloud):
    r = cloud.call("metrics", "app")
    ok(r.returncode == 0 and b"CPU" in r.stdout and b"MEMORY" in r.stdout.upper(), "metrics", r.stdout)
    doc = json.loads(cloud.call("metrics", "app", "--json").stdout)
    same((doc["id"], doc["metrics"]["memory"]["total"] > 0), (cloud.vm()["microvmId"], True), "--json")
    child = cloud.home.start("metrics", "app", "-w", "--json", "--interval", "0.2")
    docs = [json.loads(child.stdout.readline()) for _ in range(3)]
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    same(([d["name"] for d in docs], child.returncode), (["app"] * 3, 0), "-w goes on until Ctrl-C")
    cloud.vm()["state"] = "SUSPENDED"
    same((cloud.call("metrics", "app").returncode, cloud.vm()["state"]), (0, "RUNNING"), "a suspended one goes on for it")


with Cloud() as c:
    same(c.call("create", "app", "--image", IMAGE).returncode, 0, "a sandbox")
    shell(c)
    execs(c)
    waits(c)
    metrics(c)
    same(c.aws.refused, [], "every request was as the service takes it")
done()
