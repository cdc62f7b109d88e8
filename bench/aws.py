#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/aws.py ASB PEAK: asb with AWS (a stand-in on loopback, over TLS, which is in its times) beside boto3 that is only imported; and what an
asb exec asks AWS for when it has a token."""
import os
import subprocess
import sys
import tempfile

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
    finally:
        aws.close()
        agent.stop()


main()
