#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""asb infra where it needs no AWS: the file it writes, and the outputs that it has recorded."""
import json
import os

from _asb import Home, need_asb, ok, one_line, same, done

need_asb()
ARN = "arn:aws:lambda:us-east-1:123456789012:microvm-image:" + "n" * 60 + "-and-more-than-eighty-columns"


def init(home):
    r = home.call("infra", "init", cwd=home.path)
    same((r.returncode, r.stdout, r.stderr), (0, b"wrote sandbox.yaml\n", b""), "init")
    with open(os.path.join(home.path, "sandbox.yaml"), encoding="utf-8") as f:
        text = f.read()
    ok(text.startswith("#") and "project: agent-sandbox-os\n" in text, "writes a file with comments")
    r = home.call("infra", "init", cwd=home.path)
    same((r.returncode, one_line(r.stderr)), (1, ["error: sandbox.yaml is there already"]), "and not over one")
    r = home.call("infra", "init", "-f", "x.yaml", "--json", cwd=home.path)
    same((r.returncode, json.loads(r.stdout)), (0, {"file": "x.yaml"}), "another name, and JSON")
    same(home.call("infra", "init", "-f", "no/x.yaml", cwd=home.path).returncode, 1, "into a folder that is not there")
    same(home.call("infra", "init", "--force", cwd=home.path).returncode, 0, "--force")


def output(home):
    path = os.path.join(home.path, "infra-state.json")
    home.env["AGENT_SANDBOX_INFRA_STATE"] = path
    r = home.call("infra", "output", cwd=home.path)
    same((r.returncode, r.stdout), (0, b"{}\n"), "nothing yet")
    r = home.call("infra", "output", "image_arn", cwd=home.path)
    same((r.returncode, r.stdout), (1, b""), "and so no single output")
    stacks = {"agent-sandbox-os/dev": {"resources": {}, "outputs": {"image_arn": ARN, "subnet_ids": ["subnet-1", "s2"]}},
              "other/prod": {"resources": {}, "outputs": {"build_bucket": "b"}}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"stacks": stacks}, f)
    r = home.call("infra", "output", cwd=home.path)
    same(json.loads(r.stdout), {"project": "agent-sandbox-os", "stack": "dev", **stacks["agent-sandbox-os/dev"]["outputs"]},
         "all of a stack")
    same(home.call("infra", "output", "image_arn", cwd=home.path).stdout.decode(), ARN + "\n", "one, bare, on one line")
    same(home.call("infra", "output", "subnet_ids", cwd=home.path).stdout, b'["subnet-1","s2"]\n', "a list, on one line")
    same(home.call("infra", "output", "stack", cwd=home.path).stdout, b"dev\n", "the stack is one too")
    same(json.loads(home.call("infra", "output", "image_arn", "--json", cwd=home.path).stdout), ARN, "as JSON")
    r = home.call("infra", "output", "nothing", cwd=home.path)
    same((r.returncode, one_line(r.stderr)), (1, ["error: there is no output 'nothing'"]), "one that there is not")
    r = home.call("infra", "output", "--stack", "qa", cwd=home.path)
    same(r.stdout, b"{}\n", "--stack")
    r = home.call("infra", "output", "--all", cwd="/")
    same(json.loads(r.stdout), {"stacks": [{"project": "agent-sandbox-os", "stack": "dev", **stacks["agent-sandbox-os/dev"]["outputs"]},
                                           {"project": "other", "stack": "prod", "build_bucket": "b"}], "count": 2},
         "--all, without a file")
    with open(os.path.join(home.path, "sandbox.yaml"), "w", encoding="utf-8") as f:
        f.write("projct: x\n")
    r = home.call("infra", "output", cwd=home.path)
    same((r.returncode, one_line(r.stderr)), (1, ["error: sandbox.yaml:1:1: unknown key 'projct'"]), "a wrong file")
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"stacks"')
    r = home.call("infra", "output", "--all", cwd=home.path)
    ok(r.returncode == 1 and path in r.stderr.decode(), "a damaged state file is told with its path", r.stderr)
    with open(path, encoding="utf-8") as f:
        same(f.read(), '{"stacks"', "and left alone")


with Home() as home:
    init(home)
    output(home)
done()
