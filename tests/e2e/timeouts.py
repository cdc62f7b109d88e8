#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 300
"""A time limit counts the time that the VM runs: a stop that is longer than it does not end the command."""
import json
import time

from _asb import *

need_vm()
LIMIT_S, STOP_S = 20, 25
START = f"""
import http.client, json
c = http.client.HTTPConnection("127.0.0.1", 8080)
c.request("PUT", "/v1/execs/limited", json.dumps({{"argv": ["sleep", "1000"], "timeout_ms": {LIMIT_S} * 1000}}))
print(c.getresponse().status)
"""
LOOK = """
import http.client
c = http.client.HTTPConnection("127.0.0.1", 8080)
c.request("GET", "/v1/execs/limited")
print(c.getresponse().read().decode())
"""


def look(home):
    r = home.call("exec", "app", "--", "python3", "-c", LOOK)
    return json.loads(r.stdout or b"{}")


with Home() as home:
    ok(home.call("create", "app").returncode == 0, "create")
    same(home.call("exec", "app", "--", "python3", "-c", START).stdout, b"201\n", "a command with a time limit")
    same(home.call("stop", "app").returncode, 0, "stop")
    time.sleep(STOP_S)
    same(home.call("start", "app").returncode, 0, "start")
    s = look(home)
    ok(s.get("state") == "running" and not s["timed_out"], "the command has outlived a pause longer than its limit", s)
    end = time.monotonic() + 100
    while look(home).get("state") == "running" and time.monotonic() < end:
        time.sleep(1)
    s = look(home)
    ok(s.get("timed_out") is True and s["signal"] == 9, "and the limit comes", s)
done()
