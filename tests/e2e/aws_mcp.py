#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""asb mcp with sandboxes on AWS: the stand-in, in front of a real agentd; and its images, on a stand-in for an account."""
import os
import shutil
import urllib.request

from _aws import IMAGE, Cloud, Fault, done, ok, same
from _account import ACCOUNT, REGION, AccountHome
import _mcp

CONNECTOR = "arn:aws:lambda:us-east-1:123456789012:network-connector:mine"


def works(c, s):
    d = s.data("sandbox_create", name="app", image=IMAGE)
    same((d["name"], d["state"], d["microvm_id"]), ("app", "running", c.state()["app"]["microvm_id"]), "sandbox_create")
    d = s.data("sandbox_status", name="app")
    same((d["status"], d["image_arn"], d["region"]), ("RUNNING", IMAGE, "us-east-1"), "sandbox_status")
    d = s.data("sandbox_exec", name="app", command="sh", args=["-c", "cat; echo $A >&2; exit 7"], env={"A": "é"})
    same((d["exit_code"], d["stdout"]["text"], d["stderr"]["text"]), (7, "", "é\n"), "sandbox_exec")
    same(s.data("sandbox_shell", name="app", command="echo $0")["stdout"]["text"], "bash\n", "sandbox_shell")
    same(s.data("sandbox_run", command="exit 3", image=IMAGE)["exit_code"], 3, "sandbox_run")
    same(len(c.living()), 1, "which leaves nothing")
    same(s.data("sandbox_list")["count"], 1, "sandbox_list")


def files(s, home):
    def call(tool, **args):
        return s.tool("sandbox_fs_" + tool, name="app", **args)["data"]

    same(call("write", path="f", content="héllo")["bytes_written"], 6, "sandbox_fs_write")
    same(call("read", path="f")["content"]["text"], "héllo", "sandbox_fs_read")
    same(call("stat", path="f")["size"], 6, "sandbox_fs_stat")
    same(call("mkdir", path="d")["created"], True, "sandbox_fs_mkdir")
    same(call("copy", src="f", dst="d")["dst"], os.path.join(home, "d"), "sandbox_fs_copy")
    same(call("rename", src="d/f", dst="d/g")["src"], os.path.join(home, "d/f"), "sandbox_fs_rename")
    same([x["name"] for x in call("list", path="d")["entries"]], ["g"], "sandbox_fs_list")
    same(call("copy_to_host", src="d/g", host_path="out")["bytes_written"], 6, "sandbox_fs_copy_to_host")
    same(call("copy_from_host", host_path="out", dest="in")["bytes_written"], 6, "sandbox_fs_copy_from_host")
    same(call("upload", host_path="d", dest="e")["members"], 2, "sandbox_fs_upload")
    same(call("download", src="e", host_path="h")["members"], 2, "sandbox_fs_download")
    same(call("remove", path="e", recursive=True)["removed"], True, "sandbox_fs_remove")
    same(call("exists", path="e")["exists"], False, "sandbox_fs_exists")
    same(call("watch", path=".", timeout_ms=300)["events"], [], "sandbox_fs_watch")


def sessions(s):
    n = s.data("sandbox_exec_start", name="app", command="sleep", args=["600"])["session"]
    ok(n in [x["id"] for x in s.data("sandbox_exec_list", name="app")["sessions"]], "sandbox_exec_list")
    same(s.data("sandbox_exec_signal", name="app", session=n, signal="KILL")["signal"], "KILL", "sandbox_exec_signal")
    d = s.data("sandbox_exec_poll", name="app", session=n, wait_ms=20000)
    same((d["state"], d["signal"]), ("exited", 9), "and it has ended by it")
    same(s.data("sandbox_exec_close", name="app", session=n)["closed"], True, "sandbox_exec_close")


def looks(s):
    same(s.data("sandbox_inspect", name="app")["microvm"]["state"], "RUNNING", "sandbox_inspect")
    ok("CPUUtilization" in s.data("sandbox_metrics", name="app")["metrics"], "sandbox_metrics")
    same(len(s.data("sandbox_metrics_all")["sandboxes"]), 1, "sandbox_metrics_all")
    same(len(s.data("sandbox_metrics_stream", name="app", samples=2, interval_ms=100)["samples"]), 2, "sandbox_metrics_stream")
    same([s.error(t, name="app", **a)["code"] for t, a in (("sandbox_branch", {"names": ["x"]}), ("snapshot_create", {"snapshot": "x"}))],
         ["unsupported"] * 2, "what AWS has not")
    same(s.error("snapshot_list")["code"], "unsupported", "also where no sandbox is named")
    same(s.data("runtime_check")["backend"], "aws", "runtime_check")


def forwards(s):
    port = s.data("sandbox_forward_start", name="app", port=8080)["local_port"]
    with urllib.request.urlopen(f"http://localhost:{port}/healthz", timeout=60) as r:
        same(r.status, 200, "sandbox_forward_start")
    same(s.data("sandbox_forward_stop", local_port=port)["stopped"], True, "sandbox_forward_stop")


def progress(s):
    n = s.start("tools/call", {"name": "sandbox_exec", "arguments": {"name": "app", "command": "sh", "args": ["-c", "echo one; sleep 5"]},
                               "_meta": {"progressToken": "t"}})
    s.wait(n)
    got = [m["params"] for m in s.notes if m["method"] == "notifications/progress"]
    ok(got and all(p["progressToken"] == "t" and p["message"] == "4 B of output" for p in got), "progress of a command", got)


def logs(c, s):
    same(s.logs(), [], "log messages: nothing to warn of")
    s.ask("logging/setLevel", {"level": "info"})
    shutil.rmtree(os.path.join(c.home.path, ".agent_sandbox/aws/tokens"))
    s.data("sandbox_exec", name="app", command="true")
    m = s.logs()
    same([(x["level"], x["logger"], x["data"]["sandbox"]) for x in m], [("notice", "sandbox_exec", "app")], "a new token is told")
    ok("token for microvm-" in m[0]["data"]["message"] and len(m[0]["data"]["message"]) < 100, "without the token itself", m)


def life(c, s):
    c.aws.faults.append(Fault("SuspendMicrovm", late=5))
    s.notes = []
    n = s.start("tools/call", {"name": "sandbox_stop", "arguments": {"name": "app"}, "_meta": {"progressToken": "t"}})
    same(s.wait(n)["result"]["structuredContent"]["data"]["state"], "suspended", "sandbox_stop")
    got = [m["params"].get("message") for m in s.notes if m["method"] == "notifications/progress"]
    ok(got[:1] == ["suspending"] and None in got, "an answer of AWS that is late: signs of life", got)
    same(s.data("sandbox_wait", name="app", target="suspended", timeout=60)["reached_target"], True, "sandbox_wait")
    with _mcp.Server(c.home, "--read-only") as t:
        same(t.error("sandbox_fs_list", name="app", path="/")["code"], "policy_denied", "a read-only server resumes nothing")
    same(s.data("sandbox_status", name="app")["status"], "SUSPENDED", "it is as it was")
    same(s.data("sandbox_start", name="app")["state"], "running", "sandbox_start")
    s.logs()
    same((s.data("sandbox_remove", name="app")["removed"], c.living(), c.state()), (True, [], {}), "sandbox_remove")
    same([(x["level"], x["data"]["message"].split(" ")[0]) for x in s.logs()], [("info", "removed")], "and its log message")


def networks(c, s):
    """A MicroVM without a connector has the platform's own way to the internet."""
    with _mcp.Server(c.home, "--backend", "aws", "--no-network") as t:
        same([t.error(tool, image=IMAGE, **a)["code"] for tool, a in (("sandbox_create", {"name": "n"}), ("sandbox_run", {"command": "true"}))],
             ["policy_denied"] * 2, "--no-network makes nothing on AWS")
    same(c.living(), [], "nothing was made")
    with _mcp.Server(c.home, "--backend", "aws", env={"AGENT_SANDBOX_EGRESS_CONNECTOR": CONNECTOR}) as t:
        for name, args, want in (("plain", {}, "INTERNET_EGRESS"), ("mine", {"egress": True}, CONNECTOR), ("other", {"egress_connector": CONNECTOR + "2"}, CONNECTOR + "2")):
            t.data("sandbox_create", name=name, image=IMAGE, **args)
            got = t.data("sandbox_inspect", name=name)["microvm"]["egressNetworkConnectors"]
            ok(len(got) == 1 and got[0].endswith(want), f"egress of {args}", got)
            t.data("sandbox_remove", name=name)


def images():
    with AccountHome(AWS_REGION=REGION) as a:
        a.aws.buckets["b"] = {"owner": ACCOUNT, "objects": {}, "versions": [], "settings": {}}
        a.aws.roles["build"] = {"refusals": 0}
        a.aws.slow = 0
        a.write("guest/Dockerfile", b"FROM public.ecr.aws/lambda/microvms:al2023-minimal\nENTRYPOINT [\"/asb-init\"]\n")
        for _ in range(2):
            r = a.home.call("image", "build", "guest", "--name", "app", "--bucket", "b", "--role", f"arn:aws:iam::{ACCOUNT}:role/build", "--rebuild",
                            "--backend", "aws", cwd=a.home.path)
            ok(r.returncode == 0, "an image is built", r.stdout, r.stderr)
        with _mcp.Server(a.home, "--backend", "aws") as s:
            same(sorted((x["name"], x["version"]) for x in s.data("image_list")["images"]), [("app", 2)], "image_list has the newest of each name")
            ok(s.data("image_list", managed=True)["count"] >= 1, "the managed ones")
            d = s.data("image_inspect", image_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:microvm-image:app")
            same((d["image"]["name"], d["managed"]), ("app", False), "image_inspect by ARN")
            ok("builds" in s.data("image_inspect", image_arn="app:1")["image"], "and one version by name")
            same(s.error("image_inspect", image_arn="none")["code"], "not_found", "one that is not there")
            same(s.error("image_remove", image_arn="app")["code"], "confirm_required", "image_remove wants confirm")
            same(s.error("image_prune")["code"], "confirm_required", "and image_prune")
            d = s.data("image_prune", confirm=True)
            same((d["removed"], d["kept"], d["removed_count"]), (["app:1"], ["app:2"], 1), "image_prune")
            same(s.error("image_inspect", image_arn="app:1")["code"], "not_found", "it has gone")
            same(s.data("image_remove", image_arn="app", confirm=True)["removed"], True, "image_remove")
            same(s.data("image_list")["count"], 0, "none is left")
            same(s.bad, [], "nothing but messages on standard output")


with Cloud() as c:
    with _mcp.Server(c.home, "--backend", "aws", env={"AGENT_SANDBOX_WORKDIR": c.home.path}) as s:
        works(c, s)
        files(s, c.home.path)
        sessions(s)
        looks(s)
        forwards(s)
        progress(s)
        logs(c, s)
        life(c, s)
        networks(c, s)
        same(s.bad, [], "nothing but messages on standard output")
    ok(not c.aws.refused, "nothing was asked that AWS would refuse", c.aws.refused)
images()
done()
