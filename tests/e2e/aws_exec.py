#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: sanitized
"""Commands in a sandbox on AWS: through a proxy with TLS and tokens that behaves as AWS's, in front of a real agentd."""
import contextlib
import hashlib
import json
import os
import signal
import time

from _aws import IMAGE, Cloud, Fault, done, ok, same, until


def token_file(cloud):
    folder = os.path.join(cloud.home.path, ".agent_sandbox/aws/tokens")
    name, = os.listdir(folder)
    return os.path.join(folder, name)


def filled(data, fifo=None):
    """A pipe, or a FIFO, that all of DATA is in, and nobody writes to any more."""
    if fifo:
        os.mkfifo(fifo)
        rd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        wr = os.open(fifo, os.O_WRONLY)
        os.set_blocking(rd, True)
    else:
        rd, wr = os.pipe()
    os.write(wr, data)
    os.close(wr)
    return os.fdopen(rd, "rb")


def plain(cloud):
    aws = cloud.aws
    aws.calls.clear()
    before = aws.connections
    r = cloud.call("exec", "app", "--no-stdin", "--", "sh", "-c", "printf 'a\\r\\n\\000b'; echo e >&2; exit 7")
    same((r.returncode, r.stdout, r.stderr), (7, b"a\r\n\0b", b"e\n"), "bytes and status are the command's own")
    same((aws.calls, aws.connections - before), ([], 1), "a warm token: AWS is not asked, and one connection")
    for name, args, data in (("no input", ["--no-stdin"], None), ("an empty one", [], b""), ("60 KB of input", [], b"y" * 60000)):
        before = aws.connections
        cloud.proxy.requests.clear()
        r = cloud.call("exec", "app", *args, "--", "sh", "-c", "cat; echo end", **({} if data is None else {"stdin": filled(data)}))
        same((r.returncode, r.stdout), (0, (data or b"") + b"end\n"), f"with {name}")
        same(([m for m, _ in cloud.proxy.requests if m != "DELETE"], aws.connections - before), (["PUT"], 1),
             "  one request tells all, and the DELETE that may follow is on its connection")
    ok(until(lambda: cloud.agent.json("GET", "/v1/info")[1]["slots"] == 0), "and nothing is left in the agent")
    r = cloud.call("exec", "app", "--", "cat", stdin=filled(b"hi", os.path.join(cloud.home.top, "fifo")), limit=60)
    same((r.returncode, r.stdout), (0, b"hi"), "a FIFO whose writer has gone ends")
    r = cloud.call("exec", "app", "--", "cat", input=b"x" * 300000)
    same((r.returncode, len(r.stdout)), (0, 300000), "stdin")
    same(cloud.call("exec", "app", "/nonexistent").returncode, 127, "127")
    same(cloud.call("exec", "app", "/etc").returncode, 126, "126")
    same(cloud.call("exec", "app", "--timeout", "0.5", "sleep", "60").returncode, 124, "124")
    same(cloud.call("exec", "app", "--", "sh", "-c", "kill -9 $$").returncode, 137, "137")
    r = cloud.call("exec", "app", "--json", "--", "echo", "hi")
    same((json.loads(r.stdout)["stdout"], json.loads(r.stdout)["source"]), ("hi\n", "guest"), "--json")
    r = cloud.call("exec", "app", "--", "sh", "-c", "head -c 6000000 /dev/zero | tr '\\0' y")
    same((r.returncode, hashlib.sha1(r.stdout).hexdigest()), (0, hashlib.sha1(b"y" * 6000000).hexdigest()), "6 MB of output")


def tokens(cloud):
    aws, path = cloud.aws, token_file(cloud)
    def mints(name, want, prepare):
        prepare()
        aws.calls.clear()
        r = cloud.call("exec", "app", "--no-stdin", "echo", "ok")
        same((r.returncode, r.stdout, aws.count("CreateMicrovmAuthToken")), (0, b"ok\n", want), name)
    def edit_raw(text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    def edit(**more):
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            json.dump({**doc, **more}, f)
    mints("the kept one", 0, lambda: None)
    mints("one that ends soon is replaced", 1, lambda: edit(expires=int(time.time()) + 200))
    mints("one that AWS could not have given", 1, lambda: edit(expires=int(time.time()) + 10 ** 6))
    mints("one for another host", 1, lambda: edit(url="https://localhost:1"))
    mints("a damaged file", 1, lambda: edit_raw("{"))
    mints("an empty file", 1, lambda: edit_raw(""))
    mints("a header with a line break", 1, lambda: edit(token={"X-aws-proxy-auth": "a\r\nx: y"}))
    mints("one that is refused", 1, lambda: aws.tokens.clear())
    mints("a proxy that refuses once", 1, lambda: cloud.proxy.faults.append("403"))
    aws.tokens.clear()
    aws.token_life = -1
    aws.calls.clear()
    r = cloud.call("exec", "app", "--no-stdin", "true")
    ok(r.returncode == 125 and b"Token authentication failed" in r.stderr and aws.count("CreateMicrovmAuthToken") == 1,
       "refused twice: the proxy's words", r.stderr)
    aws.token_life = 3600
    mints("and the next one is made anew", 1, lambda: None)
    with open(os.path.join(os.path.dirname(path), "0" * 32 + "-" + "0" * 16 + ".json"), "w", encoding="utf-8") as f:
        f.write("{}")
    os.utime(f.name, (1, 1))
    same({p["allowedPorts"][0].get("port") for op, p in aws.calls if op == "CreateMicrovmAuthToken"}, {8080}, "never more than the port")


def faults(cloud):
    cloud.proxy.faults.extend(["502", "502"])
    r = cloud.call("exec", "app", "--no-stdin", "echo", "ok")
    same((r.returncode, r.stdout), (0, b"ok\n"), "nobody behind the endpoint for a moment")
    marks = os.path.join(cloud.agent.dir, "marks")
    for fault in (["cut"], ["part"], ["exit"], ["cut", "cut", "exit", "cut", "exit"]):
        cloud.proxy.faults.extend(fault)
        r = cloud.call("exec", "app", "--", "sh", "-c", f"echo x >> {marks}; cat; sleep 0.1; echo end; exit 3", input=b"in\n")
        same((r.returncode, r.stdout, cloud.proxy.faults), (3, b"in\nend\n", []), f"answers that are lost: {' '.join(fault)}")
    same(open(marks, encoding="utf-8").read(), "x\n" * 4, "and each command ran once")
    def slots():
        return cloud.agent.json("GET", "/v1/info")[1]["slots"]
    before = slots()
    cloud.proxy.faults.append("open")
    r = cloud.call("exec", "app", "--no-stdin", "--", "sh", "-c", "exit 3")
    same((r.returncode, cloud.proxy.requests[-1][0]), (3, "DELETE"), "an answer that does not end: what is forgotten is told over another connection")
    ok(until(lambda: slots() <= before), "and the agent has heard it", (before, slots()))
    cloud.proxy.faults.extend(["part", "cut", "cut"])
    r = cloud.call("exec", "app", "--no-stdin", "--", "sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; exit 3")
    same((r.returncode, r.stdout), (3, b"1\n2\n3\n4\n5\n"), "cut streams go on at their byte")
    cloud.proxy.faults.clear()
    vm = cloud.vm()
    vm["state"] = "SUSPENDED"
    r = cloud.call("exec", "app", "--no-stdin", "echo", "on")
    same((r.returncode, r.stdout, vm["state"]), (0, b"on\n", "RUNNING"), "a suspended one is resumed by traffic")
    vm.update(state="TERMINATED", stateReason="Container Stopped with Exit Code: 124")
    r = cloud.call("exec", "app", "--no-stdin", "true")
    ok(r.returncode == 125 and b"Container Stopped with Exit Code: 124" in r.stderr, "one that has ended says why", r.stderr)
    r = cloud.call("start", "app")
    ok(r.returncode == 1 and b"keeps nothing of it" in r.stderr, "and cannot be started again", r.stderr)
    vm.update(state="RUNNING", stateReason=None)


def kept_alive(pid):
    """Each connection of PID to somewhere has TCP's signs of life (proc(5), /proc/net/tcp: timer 2)."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    timers = [row[5].partition(":")[0] for row in rows if f"socket:[{row[9]}]" in links and row[3] == "01"]
    return timers and set(timers) == {"02"}


def quiet(cloud):
    child = cloud.home.start("exec", "app", "--no-stdin", "--", "sh", "-c", "echo up; sleep 60")
    child.stdout.readline()
    ok(until(lambda: kept_alive(child.pid), 20), "a connection on which nothing is said is kept alive")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)


def more(cloud):
    """What else goes through the agent."""
    r = cloud.call("exec", "app", "-d", "--", "sh", "-c", "echo begun; sleep 60")
    exec_id = r.stdout.decode().strip()
    ok(r.returncode == 0 and exec_id in cloud.call("execs", "app", "--no-trunc").stdout.decode(), "-d and execs", r.stderr)
    ok(cloud.call("logs", "app", exec_id).stdout == b"begun\n", "the output of a command")
    same(cloud.call("kill", "app", exec_id).returncode, 0, "kill")
    ok(b"CPU" in cloud.call("metrics", "app").stdout, "metrics")
    src = os.path.join(cloud.home.top, "tree")
    os.makedirs(os.path.join(src, "sub"))
    data = os.urandom(2000000)
    for name in ("a", "sub/b"):
        with open(os.path.join(src, name), "wb") as f:
            f.write(data)
    there = os.path.join(cloud.agent.dir, "copy")
    r = cloud.call("cp", src, f"app:{there}")
    ok(r.returncode == 0 and open(os.path.join(there, "sub/b"), "rb").read() == data, "cp in", r.stderr)
    r = cloud.call("cp", f"app:{there}", os.path.join(cloud.home.top, "back"))
    ok(r.returncode == 0 and open(os.path.join(cloud.home.top, "back/a"), "rb").read() == data, "cp out", r.stderr)


def throwaway(cloud):
    aws = cloud.aws
    before = cloud.living()
    r = cloud.call("run", IMAGE, "--", "sh", "-c", "echo out; exit 9")
    same((r.returncode, r.stdout, cloud.living(), list(cloud.state())), (9, b"out\n", before, ["app"]), "run leaves nothing behind")
    run = [p for op, p in aws.calls if op == "RunMicrovm"][-1]
    same(run["idlePolicy"], {"maxIdleDurationSeconds": 300, "suspendedDurationSeconds": 0, "autoResumeEnabled": False},
         "and AWS ends it when asb cannot")
    child = cloud.home.start("run", IMAGE, "--", "sh", "-c", "echo up; sleep 60")
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    same((child.returncode, cloud.living(), list(cloud.state())), (130, before, ["app"]), "interrupted, too")
    child = cloud.home.start("run", IMAGE, "--name", "victim", "--", "sh", "-c", "echo up; sleep 60")
    child.stdout.readline()
    child.kill()
    child.communicate(timeout=60)
    same(len(cloud.living()), len(before) + 1, "after kill -9 the MicroVM lives")
    ok("victim" in cloud.state(), "and its record tells of it")
    same((cloud.call("rm", "victim").returncode, cloud.living()), (0, before), "rm ends it")
    aws.faults.append(Fault("TerminateMicrovm", times=9, status=403, kind="AccessDeniedException", body={"message": "denied"}))
    r = cloud.call("run", IMAGE, "--name", "stuck", "--", "true")
    ok(r.returncode == 0 and b"denied" in r.stderr and "stuck" in cloud.state(), "one that cannot be ended is told and kept", r.stderr)
    aws.faults.clear()
    cloud.call("rm", "stuck")


def hosts(cloud):
    """A token goes to AWS's hosts alone, unless an endpoint of one's own is configured."""
    path = os.path.join(cloud.home.path, ".agent_sandbox/state.json")
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    good = doc["sandboxes"]["app"]["endpoint"]
    for bad in ("localhost:1/x", "user@localhost:1", "localhost:1?x", "http://localhost:1", "local host"):
        doc["sandboxes"]["app"]["endpoint"] = bad
        with open(path, "w", encoding="utf-8") as f:
            json.dump(doc, f)
        r = cloud.call("exec", "app", "true")
        ok(r.returncode == 125 and b"is not the endpoint of a MicroVM" in r.stderr, f"{bad} is refused", r.stderr)
    doc["sandboxes"]["app"]["endpoint"] = good
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)
    r = cloud.call("exec", "app", "true", env={"AWS_ENDPOINT_URL": ""})
    ok(r.returncode == 125 and b"is not the endpoint of a MicroVM" in r.stderr, "a host that is not AWS's", r.stderr)
    same(cloud.call("exec", "app", "true").returncode, 0, "back to the right one")
    r = cloud.call("exec", "app", "true", env={"AWS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt"})
    ok(r.returncode == 125, "a certificate that nobody vouches for", r.stderr)


with Cloud() as c:
    same(c.call("create", "app", "--image", IMAGE).returncode, 0, "a sandbox")
    plain(c)
    tokens(c)
    faults(c)
    quiet(c)
    more(c)
    throwaway(c)
    hosts(c)
    same(c.call("rm", "app").returncode, 0, "rm")
    same(os.listdir(os.path.join(c.home.path, ".agent_sandbox/aws/tokens")), [], "its tokens go with it, and those that have expired")
done()
