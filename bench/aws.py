#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/aws.py ASB PEAK: asb with AWS (a stand-in on loopback, over TLS, which is in its times) beside boto3 that is only imported; and what an
asb exec asks AWS for when it has a token, and how many round trips it waits for: of a way that is LATE seconds longer in each direction."""
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TOP, "tests/aws"), os.path.join(TOP, "tests/guest")]
import _agentd  # noqa: E402
from proxy import proxy_to  # noqa: E402
from server import Aws  # noqa: E402

ASB, PEAK = (os.path.abspath(a) for a in sys.argv[1:])
N = int(os.environ.get("N_AWS", "40"))
PYTHON = "/usr/bin/python3"  # Debian's boto3 is this one's


def pick(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def measure(env, *command):
    """(ms, KiB)"""
    r = subprocess.run([PEAK, *command], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    ms, kib = r.stdout.splitlines()[-1].split()
    return float(ms), int(kib)


def row(name, got, base):
    ratios = [f"{pick([x[i] for x in base], .5) / pick([x[i] for x in got], .5):.1f}" for i in (0, 1)]
    ms = [x[0] for x in got]
    print(f"| {name} | {len(got)} | {pick(ms, .5):.1f} | {pick(ms, .95):.1f} | {ratios[0]} | {pick([x[1] for x in got], .5)} | {ratios[1]} |")


def start(env):
    commands = {"asb --version": (ASB, "--version"), "asb ls --all: credentials, one signed call": (ASB, "ls", "--all"),
                f"{PYTHON} -c pass": (PYTHON, "-c", "pass"), "… -c 'import boto3'": (PYTHON, "-c", "import boto3")}
    got = {name: [] for name in commands}
    for n in range(N + 1):
        for name, command in commands.items():  # in turn, so that all have the same weather
            x = measure(env, *command)
            if n:
                got[name].append(x)
    print("\n| start | n | p50 ms | p95 ms | boto3 / this | peak RSS KiB | boto3 / this |\n|---|---|---|---|---|---|---|")
    for name in commands:
        row(name, got[name], got["… -c 'import boto3'"])


def warm(env, aws, proxy):
    subprocess.run([ASB, "create", "box", "-q", "--image", aws.image()], env=env, stdout=subprocess.DEVNULL, check=True)
    calls, connections, requests = [], [], []
    for n in range(N + 1):
        before = len(aws.calls), aws.connections, len(proxy.requests)
        subprocess.run([ASB, "exec", "box", "--", "true"], env=env, stdin=subprocess.DEVNULL, check=True)
        if n:  # the first one warms the token
            calls.append(len(aws.calls) - before[0])
            connections.append(aws.connections - before[1])
            requests.append(len(proxy.requests) - before[2])
    print("\n| asb exec with a warm token | n | median | most |\n|---|---|---|---|")
    for name, all_ in (("calls of the control plane", calls), ("TLS handshakes", connections), ("requests to the agent", requests)):
        print(f"| {name} | {len(all_)} | {pick(all_, .5)} | {max(all_)} |")
    subprocess.run([ASB, "rm", "box"], env=env, stdout=subprocess.DEVNULL, check=True)


class Far:
    """A way to PORT that each byte takes LATE s longer on, both ways. (A TCP handshake is answered here, and costs nothing.)"""
    LATE = 0.25

    def __init__(self, port):
        self.port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.port))
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for a, b in ((near, far), (far, near)):
                q = queue.Queue()
                threading.Thread(target=self.take, args=(a, q), daemon=True).start()
                threading.Thread(target=self.give, args=(b, q), daemon=True).start()

    @staticmethod
    def take(a, q):
        data = b"x"
        while data:
            try:
                data = a.recv(65536)
            except OSError:
                data = b""
            q.put((time.monotonic() + Far.LATE, data))

    @staticmethod
    def give(b, q):
        data = b"x"
        while data:
            at, data = q.get()
            time.sleep(max(0, at - time.monotonic()))
            try:
                b.sendall(data) if data else b.shutdown(socket.SHUT_WR)
            except OSError:
                pass


def trips(env):
    """Of round trips of 2 * LATE that asb exec takes: as many as it takes longer by, beside a near agent."""
    subprocess.run([ASB, "create", "box", "-q", "--image", env["IMAGE"]], env=env, stdout=subprocess.DEVNULL, check=True)
    path = os.path.join(env["HOME"], ".agent_sandbox/state.json")
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    near = doc["sandboxes"]["box"]["endpoint"]
    far = near.rpartition(":")[0] + f":{Far(int(near.rpartition(':')[2])).listener.getsockname()[1]}"
    print("\n| round trips that asb exec waits for | n | median | most |\n|---|---|---|---|")
    for name, args, data in (("true, no input", ["true"], None), ("cat, with 6 bytes of input", ["cat"], b"input\n")):
        took = {near: [], far: []}
        for at, all_ in took.items():
            doc["sandboxes"]["box"]["endpoint"] = at
            with open(path, "w", encoding="utf-8") as f:
                json.dump(doc, f)
            for n in range(N // 4 + 1):
                begin = time.monotonic()
                how = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
                subprocess.run([ASB, "exec", "box", "--", *args], env=env, stdout=subprocess.DEVNULL, check=True, **how)
                if n:  # the first one mints a token for this endpoint
                    all_.append(time.monotonic() - begin)
        base = pick(took[near], .5)
        more = [(t - base) / (2 * Far.LATE) for t in took[far]]
        print(f"| {name} | {len(more)} | {pick(more, .5):.2f} | {max(more):.2f} |")
    doc["sandboxes"]["box"]["endpoint"] = near
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)
    subprocess.run([ASB, "rm", "box"], env=env, stdout=subprocess.DEVNULL, check=True)


def main():
    agent = _agentd.Agentd()
    proxy = proxy_to({8080: agent.port})
    aws = Aws(backend=proxy)
    try:
        with tempfile.TemporaryDirectory() as home:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AGENT_SANDBOX_"))}
            env |= {"HOME": home, "AGENT_SANDBOX_BACKEND": "aws", "PYTHONDONTWRITEBYTECODE": "1", **aws.env()}
            start(env)
            warm(env, aws, proxy)
            trips(env | {"IMAGE": aws.image()})
    finally:
        aws.close()
        agent.stop()


main()
