#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/mcp.py ASB: the rows of `asb mcp`, with `asb exec` in turn in the same sandbox beside it."""
import json
import os
import subprocess
import sys
import tempfile
import time

ASB = os.path.abspath(sys.argv[1])
STARTS, CALLS = int(os.environ.get("N_STARTS", "200")), int(os.environ.get("N_CALLS", "200"))
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}\n'


def pick(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def row(name, values, floor=None):
    ratio = f"{pick(values, .5) / pick(floor, .5):.2f}" if floor else ""
    print(f"| {name} | {len(values)} | {pick(values, .5):.2f} | {pick(values, .95):.2f} | {pick(values, .99):.2f} | {ratio} |", flush=True)


def server(env):
    return subprocess.Popen([ASB, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def ask(p, line):
    os.write(p.stdin.fileno(), line)
    return p.stdout.readline()


def call(n, tool, /, **args):
    return json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": tool, "arguments": args}}).encode() + b"\n"


def memory(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        all_ = {x.split(":")[0]: int(x.split()[1]) for x in f if x.endswith("kB\n")}
    return all_["Rss"], all_["Pss"]


with tempfile.TemporaryDirectory() as home:
    env = {**os.environ, "HOME": home}
    env.pop("AGENT_SANDBOX_STATE", None)
    print("\n| asb mcp | n | p50 ms | p95 ms | p99 ms | ratio |\n|---|---|---|---|---|---|")
    starts, floor = [], []
    for _ in range(STARTS):
        t = time.perf_counter()
        subprocess.run([ASB, "--version"], stdout=subprocess.DEVNULL, check=True)
        floor.append((time.perf_counter() - t) * 1e3)
        t = time.perf_counter()
        p = server(env)
        assert b"protocolVersion" in ask(p, INITIALIZE)
        starts.append((time.perf_counter() - t) * 1e3)
        p.stdin.close()
        p.wait()
        p.stdout.close()
    row("asb --version, started and waited for", floor)
    row("start to initialize answered; ratio to asb --version", starts, floor)
    p = server(env)
    ask(p, INITIALIZE)
    ask(p, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    subprocess.run([ASB, "create", "box", "-q"], env=env, stdout=subprocess.DEVNULL, check=True)
    try:
        idle, lists, calls, execs, guest = memory(p.pid), [], [], [], []
        for i in range(CALLS + 5):
            t = time.perf_counter()
            ask(p, call(2 * i + 2, "sandbox_status", name="box"))
            lists.append((time.perf_counter() - t) * 1e3)
            t = time.perf_counter()
            m = json.loads(ask(p, call(2 * i + 3, "sandbox_exec", name="box", command="true", cwd="/")))
            calls.append((time.perf_counter() - t) * 1e3)
            assert m["result"]["structuredContent"]["data"]["exit_code"] == 0
            guest.append(m["result"]["structuredContent"]["data"]["duration_ms"])
            t = time.perf_counter()
            subprocess.run([ASB, "exec", "box", "--", "true"], env=env, stdin=subprocess.DEVNULL, check=True)
            execs.append((time.perf_counter() - t) * 1e3)
        row("tools/call sandbox_status", lists[5:])
        row("asb exec true, started and waited for", execs[5:])
        row("tools/call sandbox_exec true; ratio to asb exec", calls[5:], execs[5:])
        row("  of that, the command in the guest (its agent's clock)", guest[5:])
        print(f"\nidle after initialize and tools/list: {idle[0]} KiB resident, {idle[1]} KiB of it its own share")
    finally:
        subprocess.run([ASB, "rm", "-f", "box"], env=env, stdout=subprocess.DEVNULL, check=False)
        p.stdin.close()
        p.wait()
