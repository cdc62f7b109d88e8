#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/v1/info, /v1/metrics in both forms, /v1/ports: members, counters that move, ports that come and go."""
import os
import re
import socket
import threading
import time

from _agentd import *

CGROUP = os.environ.get("AGENTD_TEST_CGROUP") == "1"
a = Agentd()


def metrics(**headers):
    s, b = a.json("GET", "/v1/metrics", headers=headers)
    assert s == 200, (s, b)
    return b


# --- info
s, info = a.json("GET", "/v1/info")
ok(s == 200 and info["kernel"] == os.uname().release and info["hostname"] == os.uname().nodename, "info names the system", info)
with open("/proc/sys/kernel/random/boot_id") as f:
    equal(info["boot_id"], f.read().strip(), "and the boot")
with open("/proc/uptime") as f:
    ok(abs(info["uptime_ms"] / 1000 - float(f.read().split()[0])) < 60, "uptime", info["uptime_ms"])
ok(info["limits"]["memory"] in ("cgroup", "rlimit") and set(info["limits"]) == {"memory", "cpu", "pids"}, "how limits are kept",
   info["limits"])
ok(info["caps"]["execs"] == 256 and info["caps"]["message_bytes"] == 65536, "caps of the API", info["caps"])
for name in ("version", "arch", "cgroups", "workload_limits", "private_socket", "draining", "execs", "slots", "slots_max", "in_flight"):
    ok(name in info, f"info still has {name}")

# --- metrics
m = metrics()
ok(m["cpu"]["count"] == len(os.sched_getaffinity(0)) and 0 <= m["cpu"]["percent"] <= 100 and m["cpu"]["busy_s"] > 0, "CPU", m["cpu"])
ok(m["cpu"]["interval_ms"] > 1000, "the first answer covers the time since boot", m["cpu"])
mem = m["memory"]
ok(0 < mem["available"] < mem["total"] and mem["used"] == mem["total"] - mem["available"], "memory", mem)
v = os.statvfs("/")
ok(m["disk"]["total"] == v.f_blocks * v.f_frsize and m["disk"]["used"] > 0, "disk", m["disk"])
ok(all(n["interface"] != "lo" for n in m["network"]) and len(m["network"]) <= 32, "interfaces", m["network"])
ok((m["workload"] is not None) == CGROUP, "the workload has numbers where it has a cgroup", m["workload"])
ok(m["agent"]["rss"] > 100000 and m["agent"]["connections"] >= 1 and m["agent"]["fds"] > 3, "the agent itself", m["agent"])
time.sleep(0.2)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    pass
n = metrics()
ok(0 < n["cpu"]["interval_ms"] < 60000 and n["cpu"]["percent"] > 0, "the next one covers the time between", n["cpu"])
ok(n["agent"]["requests"] > m["agent"]["requests"], "requests are counted", (m["agent"], n["agent"]))
again = metrics()
ok(again["cpu"]["percent"] == n["cpu"]["percent"] or again["cpu"]["interval_ms"] >= 100, "no percentage of a moment", again["cpu"])

# --- counters of commands
a.sh("true")
a.sh("exit 3")
a.sh("sleep 20", timeout=0.2)
a.exec("/does/not/exist")
a.put("e1", shell="sleep 30")
m = metrics()
e = m["execs"]
ok(e["started"] == 4 and e["failed"] == 1 and e["timed_out"] == 1 and e["running"] == 1 and e["oom"] == 0, "commands are counted", e)
ok(until(lambda: metrics()["execs"]["ended"] == 3), "and their ends", metrics()["execs"])
a.request("DELETE", "/v1/execs/e1?kill=1")
ok(until(lambda: metrics()["execs"]["running"] == 0), "running goes down again")

# --- Prometheus
LINE = re.compile(r'^asb_[a-z0-9_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? -?[0-9.]+$')
for headers, query in (({"Accept": "text/plain"}, ""), ({"Accept": "application/openmetrics-text;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"}, ""),
                       ({}, "?format=prometheus")):
    s, b, h = a.request("GET", "/v1/metrics" + query, headers=headers)
    text = b.decode()
    ok(s == 200 and h["Content-Type"].startswith("text/plain; version=0.0.4") and text.endswith("\n"), f"Prometheus by {headers or query}", h)
    bad = [x for x in text.splitlines() if not x.startswith("# TYPE ") and not LINE.match(x)]
    equal(bad, [], "  every line is one of the format")
types = dict(re.findall(r"^# TYPE (\S+) (counter|gauge)$", text, re.M))
names = {re.split(r"[ {]", x)[0] for x in text.splitlines() if not x.startswith("#")}
equal(names - set(types), set(), "every series has a type")
ok(all(t == ("counter" if x.endswith("_total") else "gauge") for x, t in types.items()), "counters are named _total", types)
ok("asb_execs_started_total 4" in text and "asb_memory_total_bytes " in text and "asb_cpu_busy_seconds_total " in text, "names", text[:300])
ok(not re.search(r"null|nan|inf", text), "what is not known is left out")
s, b, h = a.request("GET", "/v1/metrics?format=json", headers={"Accept": "text/plain"})
ok(s == 200 and h["Content-Type"] == "application/json", "format wins over Accept")
equal(a.json("GET", "/v1/metrics?format=xml")[0], 400, "another format is 400")
equal(a.json("POST", "/v1/metrics")[0], 405, "only GET")
try:
    from prometheus_client.parser import text_string_to_metric_families
    ok(len(list(text_string_to_metric_families(text))) == len(types), "the official parser reads it")
except ImportError:
    skip("the official parser reads it", "prometheus_client is not installed")


# --- ports
def ports(query=""):
    s, b = a.json("GET", "/v1/ports" + query)
    assert s == 200, (s, b)
    return b["ports"]


def entry(port, proto="tcp", query=""):
    return [p for p in ports(query) if p["port"] == port and p["protocol"] == proto]


ok(not entry(a.port), "agentd's own port is left out")
own = entry(a.port, query="?all=1")
ok(len(own) == 1 and own[0]["address"] == "127.0.0.1" and own[0].get("pid") == a.pid and own[0]["process"] == "agentd", "unless all=1", own)
equal(a.json("GET", "/v1/ports?all=x")[0], 400, "all=x is 400")
lst = socket.create_server(("127.0.0.1", 0))
port = lst.getsockname()[1]
cli = socket.create_connection(("127.0.0.1", port))
got = entry(port)
ok(len(got) == 1 and got[0].get("pid") == os.getpid() and got[0]["process"].startswith("python3"), "a listener, its process; connections do not count", got)
cli.close()
lst.close()
ok(not entry(port), "gone when closed")
try:
    six = socket.create_server(("::1", 0), family=socket.AF_INET6)
    got = entry(six.getsockname()[1])
    ok(len(got) == 1 and got[0]["address"] == "::1", "IPv6", got)
    six.close()
except OSError as why:
    skip("IPv6", str(why))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", 0))
got = entry(udp.getsockname()[1], "udp")
ok(len(got) == 1 and got[0]["address"] == "0.0.0.0", "UDP", got)
udp.close()
a.put("srv", argv=["python3", "-m", "http.server", "--bind", "127.0.0.1", str(free := free_port())])
ok(until(lambda: entry(free)), "a server that a command has started is listed", ports())
a.request("DELETE", "/v1/execs/srv?kill=1")
many = [socket.create_server(("127.0.0.1", 0)) for _ in range(600)]
s, b = a.json("GET", "/v1/ports")
ok(s == 200 and b["truncated"] and len(b["ports"]) <= 512, "a bounded list says that there is more", (s, len(b["ports"]), b["truncated"]))
for x in many:
    x.close()

# --- a crowd, with nothing left behind
fds = a.fds()
threads = [threading.Thread(target=lambda: [a.request("GET", p) for p in ("/v1/metrics", "/v1/ports", "/v1/info")]) for _ in range(30)]
for t in threads:
    t.start()
for t in threads:
    t.join()
ok(until(lambda: a.fds() <= fds), "no descriptor is left behind", (fds, a.fds()))
equal(a.stop(), 0, "agentd ends in order")
done()
