#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""asb mcp with sandboxes on AWS: the stand-in, in front of a real agentd."""
import os
import shutil

from _aws import Cloud, done, ok, same
import _mcp

IMAGE = "arn:aws:lambda:us-east-1:123456789012:microvm-image:guest"

with Cloud() as c, _mcp.Server(c.home, "--backend", "aws", env={"AGENT_SANDBOX_WORKDIR": c.home.path}) as s:
    d = s.data("sandbox_create", name="app", image=IMAGE)
    same((d["name"], d["state"], d["microvm_id"]), ("app", "running", c.state()["app"]["microvm_id"]), "sandbox_create")
    d = s.data("sandbox_status", name="app")
    same((d["status"], d["image_arn"], d["region"]), ("RUNNING", IMAGE, "us-east-1"), "sandbox_status")
    d = s.data("sandbox_exec", name="app", command="sh", args=["-c", "cat; echo $A >&2; exit 7"], env={"A": "é"})
    same((d["exit_code"], d["stdout"]["text"], d["stderr"]["text"]), (7, "", "é\n"), "sandbox_exec")
    same(s.data("sandbox_fs_write", name="app", path="f", content="héllo")["bytes_written"], 6, "sandbox_fs_write")
    same(s.data("sandbox_fs_read", name="app", path="f")["content"]["text"], "héllo", "sandbox_fs_read")
    same(s.data("sandbox_fs_stat", name="app", path="f")["size"], 6, "sandbox_fs_stat")
    n = s.data("sandbox_exec_start", name="app", command="sleep", args=["600"])["session"]
    same(s.data("sandbox_exec_signal", name="app", session=n, signal="KILL")["signal"], "KILL", "sandbox_exec_signal")
    d = s.data("sandbox_exec_poll", name="app", session=n, wait_ms=20000)
    same((d["state"], d["signal"]), ("exited", 9), "and it has ended by it")
    same(s.data("sandbox_exec_close", name="app", session=n)["closed"], True, "sandbox_exec_close")
    same(s.error("sandbox_forward_start", name="app", port=80)["code"], "unsupported", "what AWS has not")
    same(s.data("sandbox_list")["count"], 1, "sandbox_list")
    same(s.logs(), [], "log messages: nothing to warn of")
    s.ask("logging/setLevel", {"level": "info"})
    shutil.rmtree(os.path.join(c.home.path, ".agent_sandbox/aws/tokens"))
    s.data("sandbox_exec", name="app", command="true")
    m = s.logs()
    same([(x["level"], x["logger"], x["data"]["sandbox"]) for x in m], [("notice", "sandbox_exec", "app")], "a new token is told")
    ok("token for microvm-" in m[0]["data"]["message"] and len(m[0]["data"]["message"]) < 100, "without the token itself", m)
    same((s.data("sandbox_remove", name="app")["removed"], c.living(), c.state()), (True, [], {}), "sandbox_remove")
    same([(x["level"], x["data"]["message"].split(" ")[0]) for x in s.logs()], [("info", "removed")], "and the removal")
    ok(not c.aws.refused, "nothing was asked that AWS would refuse", c.aws.refused)
    same(s.bad, [], "nothing but messages on standard output")
done()
