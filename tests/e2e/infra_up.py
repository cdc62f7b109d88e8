#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""asb infra against a stand-in for an AWS account (tests/aws/account.py), which checks each request: up, what changes, what was there
before, what goes wrong, being killed after any call, and destroy, after which nothing may be left."""
import json
import os
import signal
import subprocess
import time

from _asb import ASB, done, ok, one_line, same
from _account import ACCOUNT, REGION, AccountHome

IMAGE = f"arn:aws:lambda:{REGION}:{ACCOUNT}:microvm-image:agent-sandbox-guest"
STEP = 1 if os.environ.get("ASB_SLOW") else 3  # of the calls after which up is killed
PLAIN = f"project: demo\nregion: {REGION}\n"
EGRESS = PLAIN + "network: {egress: {enabled: true}}\n"
ALL = ("role", "build_role", "bucket", "guest_object", "image", "security_group", "network_operator_role", "network_connector")


class Stack(AccountHome):
    """With a sandbox.yaml and a guest folder."""

    def __init__(self, text=PLAIN):
        super().__init__()
        self.write("guest/Dockerfile", "FROM scratch\nCMD x\n")
        self.write("sandbox.yaml", text)

    def asb(self, *args, **kw):
        return self.home.call("infra", *args, cwd=self.home.path, **kw)

    def good(self, name, *args):
        r = self.asb(*args)
        ok(r.returncode == 0, name, r.stdout, r.stderr)
        return r

    def plan(self, *args):
        r = self.asb("preview", "--json", *args)
        return {a["resource"]: a["action"] for a in json.loads(r.stdout)["stacks"][0].get("actions", [])}

    def record(self):
        path = os.path.join(self.home.path, ".agent_sandbox/infra-state.json")
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as f:
            return json.load(f)["stacks"].get("demo/dev", {"resources": {}, "outputs": {}})

    def outputs(self):
        return json.loads(self.asb("output").stdout)


def whole_life():
    with Stack(EGRESS) as s:
        s.aws.unready = 2  # calls that refuse a new role
        same(s.plan(), {r: "upload" if r == "guest_object" else "create" for r in ALL}, "preview of a new stack")
        same(s.aws.left(), {}, "makes nothing")
        s.good("up", "up")
        r = s.record()["resources"]
        same(sorted(r), sorted(ALL), "everything is recorded")
        ok(all(x["managed"] and "creating" not in x["attrs"] for x in r.values()), "as ours, and made", r)
        same([r[k]["kind"] for k in ALL], ["iam-role", "iam-role", "s3-bucket", "s3-object", "microvm-image", "ec2-sg", "iam-role",
                                           "network-connector"], "in the Python project's kinds")
        o = s.outputs()
        same((o["image_arn"], o["execution_role_arn"], o["vpc_id"], o["subnet_ids"]),
             (IMAGE, f"arn:aws:iam::{ACCOUNT}:role/agent-sandbox-exec", "vpc-1", ["subnet-a", "subnet-b"]), "outputs")
        bucket = s.aws.buckets[o["build_bucket"]]
        same(sorted(bucket["settings"]), ["encryption", "lifecycle", "ownershipControls", "policy", "publicAccessBlock"], "the bucket's settings")
        ok(o["build_bucket"].startswith("demo-dev-") and "aws:SecureTransport" in bucket["settings"]["policy"], "private, and TLS only")
        execution, build = s.aws.roles["agent-sandbox-exec"], s.aws.roles["agent-sandbox-build"]
        ok("s3" not in json.dumps(execution["inline"]) and o["build_bucket"] in build["inline"]["agent-sandbox-s3-read"],
           "only builds read the bucket", execution, build)
        ok(f'"aws:SourceAccount":"{ACCOUNT}"' in execution["trust"] and "aws:SourceArn" in build["trust"], "no confused deputy")
        same(s.aws.images[IMAGE]["tags"], {"agent-sandbox-stack": "demo/dev"}, "tags")
        before = len(s.aws.calls)
        same(set(s.plan().values()), {"keep"}, "then there is nothing to do")
        s.good("up again", "up")
        ok(not any(c.startswith(("Create", "Put", "PUT", "Update", "Delete")) for c in s.aws.calls[before:]), "changes nothing",
           s.aws.calls[before:])
        changes(s)
        s.good("destroy", "destroy", "--yes")
        same(s.aws.left(), {}, "leaves nothing")
        same(s.record(), {"resources": {}, "outputs": {}}, "neither in the record")


def changes(s):
    s.write("guest/Dockerfile", "FROM scratch\nRUN x\nCMD x\n")
    same({k: v for k, v in s.plan().items() if v != "keep"}, {"guest_object": "upload", "image": "update"}, "another guest folder")
    s.good("up builds it", "up")
    same((s.aws.images[IMAGE]["built"], s.record()["resources"]["image"]["attrs"]["version"]), (2, "2.0"), "as the second version")
    s.write("guest/.env", "SECRET=1\n")
    s.write("guest/notes", "x")
    s.write("guest/.dockerignore", "notes\n.dockerignore\n")
    same(set(s.plan().values()), {"keep"}, "what is ignored changes nothing")
    s.good("--rebuild", "up", "--rebuild")
    same(s.aws.images[IMAGE]["built"], 3, "builds in any case")
    s.write("sandbox.yaml", EGRESS + "role: {extra_policy_arns: ['arn:aws:iam::aws:policy/ReadOnlyAccess']}\nbucket: {expire_days: 7}\n")
    same({k: v for k, v in s.plan().items() if v != "keep"}, {"role": "update", "bucket": "update"}, "other settings")
    s.good("up sets them", "up")
    same(s.aws.roles["agent-sandbox-exec"]["attached"], ["arn:aws:iam::aws:policy/ReadOnlyAccess"], "a policy is attached")
    ok("<Days>7</Days>" in list(s.aws.buckets.values())[0]["settings"]["lifecycle"], "artefacts expire sooner")
    s.aws.roles["agent-sandbox-build"]["inline"]["agent-sandbox-s3-read"] = '{"Version": "2012-10-17", "Statement": []}'
    del s.aws.subnets["subnet-b"]
    s.write("sandbox.yaml", EGRESS)
    same({k: v for k, v in s.plan().items() if v != "keep"},
         {"role": "update", "bucket": "update", "build_role": "update", "network_operator_role": "update", "network_connector": "update"},
         "drift is seen")
    s.good("and set right", "up")
    same(s.aws.roles["agent-sandbox-exec"]["attached"], [], "the policy is detached")
    same(list(s.aws.connectors.values())[0]["config"]["VpcEgressConfiguration"]["SubnetIds"], ["subnet-a"], "the connector has its subnets")
    s.write("sandbox.yaml", PLAIN)
    s.good("egress is no longer wanted", "up")
    same(sorted(s.aws.left()), ["buckets", "images", "roles"], "so it goes")
    ok("egress_network_connector_arn" not in s.outputs(), "from the outputs too")


def before_us():
    with Stack(EGRESS) as s:
        s.good("(somebody's stack)", "up", "--stack", "other")
        theirs = json.dumps([s.aws.roles, s.aws.groups])
        got = s.plan()
        same({got[k] for k in ALL if k not in ("bucket", "guest_object")}, {"adopt"}, "what is there is adopted")
        s.good("up beside it", "up")
        same(json.dumps([s.aws.roles, s.aws.groups]), theirs, "nothing of it is changed")
        ok(not any(v["managed"] for k, v in s.record()["resources"].items() if k != "bucket"), "and it is recorded as not ours")
        r = s.good("destroy", "destroy", "--yes")
        ok(b"leave" in r.stderr, "leaves it", r.stderr)
        same((json.dumps([s.aws.roles, s.aws.groups]), len(s.aws.images), len(s.aws.connectors), len(s.aws.buckets)), (theirs, 1, 1, 1),
             "all of it is still there")
        s.write("sandbox.yaml", PLAIN + f"role: {{arn: 'arn:aws:iam::{ACCOUNT}:role/team/mine'}}\nbucket: {{name: given-bucket}}\n")
        s.aws.buckets["given-bucket"] = {"owner": ACCOUNT, "objects": {}, "versions": [], "settings": {}}
        got = s.plan()
        same((got["role"], got["bucket"]), ("reuse", "reuse"), "what the file gives is used")
        s.good("up with it", "up")
        same(s.record()["resources"]["role"], {"kind": "iam-role", "id": "mine", "managed": False,
                                               "attrs": {"arn": f"arn:aws:iam::{ACCOUNT}:role/team/mine"}}, "recorded as the Python project does")
        s.write("sandbox.yaml", PLAIN)
        same(s.plan()["bucket"], "adopt", "a bucket that the file gives no longer is adopted")
        s.good("up with that", "up")
        same(s.record()["resources"]["bucket"]["managed"], False, "and does not become ours")
        other = IMAGE.replace("agent-sandbox-guest", "other")
        s.aws.images[other] = {"arn": other, "state": "DELETING", "waits": 2, "built": 1, "tags": {}}
        s.write("sandbox.yaml", PLAIN + "image: {name: other}\n")
        s.good("up of another image, which somebody deletes", "up")
        same(sorted(s.aws.images), [IMAGE, other], "leaves the adopted one alone")
        s.good("destroy", "destroy", "--yes")
        same((s.aws.buckets["given-bucket"]["settings"], sorted(s.aws.images)), ({}, [IMAGE]), "what was given or adopted is never changed")


def goes_wrong():
    with Stack() as s:
        s.aws.build_fails = True
        s.aws.faults["GetRole"] = [(404, "NoSuchEntity")] * 4  # two when it looks, then a new role that is not shown yet
        r = s.asb("up")
        ok(r.returncode == 1 and b"The container image build failed." in r.stderr, "a failed build is told with its reason", r.stderr)
        ok(b"11111111" not in r.stderr and s.record()["resources"]["image"]["managed"], "the image is recorded", s.record())
        s.aws.build_fails = False
        same(s.plan()["image"], "replace", "it is made anew")
        s.good("by up", "up")
        s.aws.faults["GetMicrovmImage"] = [(500, "InternalServerException")] * 20
        s.aws.faults["GetRole"] = [(403, "ExpiredToken")] * 20
        before = s.record()
        r = s.asb("refresh")
        ok(r.returncode == 1 and b"stay recorded" in r.stderr, "refresh with errors fails", r.stderr)
        same(s.record(), before, "and drops nothing")
        s.aws.faults.clear()
        del s.aws.roles["agent-sandbox-build"]
        s.good("refresh", "refresh")
        ok("build_role" not in s.record()["resources"] and "build_role_arn" not in s.outputs(), "what is gone is dropped")
        s.good("up makes it again", "up")
        s.aws.vms["microvm-1"] = {"image": IMAGE, "state": "RUNNING"}
        r = s.asb("destroy", "--yes")
        ok(r.returncode == 1 and b"--force" in r.stderr and len(s.aws.roles) == 2, "destroy refuses while a sandbox lives", r.stderr)
        r = s.asb("destroy", "--force")
        ok(r.returncode == 1 and b"--yes" in r.stderr and b"credentials" not in r.stderr and len(s.aws.roles) == 2, "and without --yes, with nobody to ask", r.stderr)
        s.write("sandbox.yaml", PLAIN + "image: {name: other}\n")
        r = s.asb("up")
        ok(r.returncode == 1 and b"another name" in r.stderr, "another name of the image is refused", r.stderr)
        s.write("sandbox.yaml", PLAIN)
        list(s.aws.buckets.values())[0].update(versions=["old", "a<b&c", "x y", "null"], uploads=["half/of it", "more"])
        for op in ("DeleteMicrovmImage", "DELETE bucket", "DeleteRole"):
            s.aws.faults[op] = [(403, "AccessDenied")]
            r = s.asb("destroy", "--yes", "--force")
            ok(r.returncode == 1 and b"as the test wants it" in r.stderr, f"destroy is refused at {op}", r.stderr)
        same(s.aws.vms["microvm-1"]["state"], "TERMINATED", "--force has ended it")
        s.good("destroy goes on", "destroy", "--yes")
        same(s.aws.left(), {}, "and leaves nothing")
        s.aws.images[IMAGE] = {"arn": IMAGE, "state": "DELETING", "waits": 2, "built": 1, "tags": {}}
        same(s.plan()["image"], "replace", "an image of this name is being deleted")
        s.good("up waits for that", "up")
        for gone in (s.aws.roles, s.aws.buckets, s.aws.images):
            gone.clear()
        s.good("refresh when all is gone", "refresh")
        same(s.record(), {"resources": {}, "outputs": {}}, "drops all, the outputs too")
        s.write("sandbox.yaml", "project: 1\n")
        same(one_line(s.asb("up").stderr), ["error: sandbox.yaml:1:10: project: text is wanted; put '1' into quotes"], "a wrong file")
        r = s.asb("up", env={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"})
        same(r.returncode, 1, "is told before AWS is asked")


def preflight():
    """A Dockerfile that is known to fail is not sent to a build; where none is due it does not matter."""
    with Stack() as s:
        s.aws.slow = 0
        bad = "sandbox.yaml: image.guest_dir ./guest: Dockerfile:2: what it copies is not in the folder, or left out of the zip: app.py"
        for what, text, docker in (("a file that is not there", bad, "FROM a\nCOPY app.py /\nCMD x\n"),
                                   ("nothing to run", "neither ENTRYPOINT nor CMD, so that nothing would answer", "FROM scratch\n"),
                                   ("another platform", "Dockerfile:1: MicroVMs are arm64", "FROM amd64/debian\nCMD x\n"),
                                   ("another port", "the hooks are called on port 9000", "FROM a\nENV AGENTD_HOOK_PORT=1\nCMD x\n")):
            s.write("guest/Dockerfile", docker)
            for command in ("up", "preview"):
                r = s.asb(command)
                ok(r.returncode == 1 and text.encode() in r.stderr and b"--no-check" in r.stderr, f"{command} refuses {what}", r.stderr)
        same(s.aws.left(), {}, "and nothing is made")
        s.write("guest/Dockerfile", "FROM a\nCOPY app.py /\nCMD x\n")
        d = json.loads(s.asb("preview", "--json").stdout)["stacks"][0]
        same((len(d["actions"]), bad in d["error"]["message"]), (5, True), "preview tells the plan all the same")
        ok(b"warning" not in s.good("preview --no-check", "preview", "--no-check").stderr, "says nothing of it")
        s.good("up --no-check", "up", "--no-check")
        same(s.aws.images[IMAGE]["built"], 1, "builds it")
        s.good("up of what is there already", "up")
        r = s.asb("up", "--rebuild")
        ok(r.returncode == 1 and bad.encode() in r.stderr and s.aws.images[IMAGE]["built"] == 1, "but a build of it is refused", r.stderr)
        s.write("guest/Dockerfile", "FROM ours:1\n")
        note = b"warning: demo/dev: Dockerfile:1: the last stage has neither ENTRYPOINT nor CMD: unless ours:1 has one, nothing will answer"
        r = s.good("up of what another image may start", "up")
        ok(note in r.stderr and s.aws.images[IMAGE]["built"] == 2, "warns, and builds", r.stderr)
        ok(b"warning" not in s.good("up again", "up").stderr, "where nothing is built there is nothing to warn of")
        os.unlink(os.path.join(s.home.path, "guest/Dockerfile"))
        r = s.asb("up")
        ok(r.returncode == 1 and b"has no Dockerfile" in r.stderr, "no Dockerfile at all", r.stderr)


def somebody_else(s):
    """Makes what `up` wants to make, as another stack; a dictionary of functions by operation."""
    tags = {"agent-sandbox-stack": "demo/other"}
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:network-connector:nc-other"
    config = {"VpcEgressConfiguration": {"SubnetIds": ["subnet-b"]}}
    return {
        "CreateRole": lambda: s.aws.roles.update({"agent-sandbox-exec": {"trust": "{}", "inline": {}, "attached": [], "refusals": 0, "tags": tags}}),
        "CreateSecurityGroup": lambda: s.aws.groups.update({"sg-other": {"name": "agent-sandbox-egress", "tag": "demo/other"}}),
        "CreateMicrovmImage": lambda: s.aws.images.update({IMAGE: {"arn": IMAGE, "state": "CREATED", "waits": 0, "built": 7, "tags": tags}}),
        "CreateNetworkConnector": lambda: s.aws.connectors.update({"nc-other": {
            "arn": arn, "name": "agent-sandbox-egress", "id": "nc-other", "state": "ACTIVE", "waits": 0, "config": config, "role": "r", "tags": tags,
            "groups": []}}),
    }


THEIRS = {"role": "CreateRole", "security_group": "CreateSecurityGroup", "image": "CreateMicrovmImage", "network_connector": "CreateNetworkConnector"}


def somebody_quicker():
    """What another makes between our look and our call is not ours: neither then, nor when we end before we know."""
    with Stack(EGRESS) as s:
        theirs = somebody_else(s)
        s.aws.slow, s.aws.before = 0, dict(theirs)
        s.good("up, and somebody is quicker each time", "up")
        same(sorted(k for k, v in s.record()["resources"].items() if not v["managed"]), sorted(THEIRS), "theirs is recorded as not ours")
        same(s.outputs()["image_arn"], IMAGE, "and used")
        s.good("destroy", "destroy", "--yes")
        left = {"roles": ["agent-sandbox-exec"], "groups": ["sg-other"], "images": [IMAGE], "connectors": ["nc-other"]}
        same(s.aws.left(), left, "leaves theirs")
        for op in THEIRS.values():
            for then in ("up", "destroy"):
                for made in (s.aws.roles, s.aws.groups, s.aws.images, s.aws.connectors):
                    made.clear()
                s.aws.faults[op] = [(403, "AccessDenied")]
                r = s.asb("up")
                ok(r.returncode == 1, f"{op} is refused", r.stderr)
                theirs[op]()
                if then == "up":
                    s.good("up when another has made it", "up")
                s.good("destroy", "destroy", "--yes")
                same(s.aws.left(), {k: v for k, v in left.items() if k in
                                    {"CreateRole": "roles", "CreateSecurityGroup": "groups", "CreateMicrovmImage": "images"}.get(op, "connectors")},
                     f"leaves theirs after {then}")


def python_record():
    """A stack that the Python project has recorded: its members and attributes alone."""
    with Stack(EGRESS) as s:
        s.aws.slow = 0
        s.good("(a stack)", "up")
        path = os.path.join(s.home.path, ".agent_sandbox/infra-state.json")
        with open(path, encoding="utf-8") as f:
            state = json.load(f)
        mine = state["stacks"]["demo/dev"]["resources"]
        s.aws.roles.pop(mine.pop("build_role")["id"])  # it has one role for both
        keeps = {"role": ("arn",), "network_operator_role": ("arn",), "guest_object": ("bucket",), "image": ("version",)}
        for name, r in mine.items():
            r["attrs"] = {k: v for k, v in r["attrs"].items() if k in keeps.get(name, ())}
        for where in (state, state["stacks"]["demo/dev"], mine["role"], mine["role"]["attrs"]):
            where["of another"] = [1]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(state, f, indent=2)
        s.good("up takes it over", "up")
        with open(path, encoding="utf-8") as f:
            now = json.load(f)
        got = now["stacks"]["demo/dev"]["resources"]
        same(sorted(got), sorted(ALL), "what it had no name for is added")
        same({k: (v["kind"], v["managed"], {a: v["attrs"].get(a) for a in keeps.get(k, ()) if a != "version"}) for k, v in got.items() if k in mine
              and k != "guest_object"},
             {k: (v["kind"], v["managed"], {a: v["attrs"][a] for a in keeps.get(k, ()) if a != "version"}) for k, v in mine.items()
              if k != "guest_object"}, "its members are as they were")
        same([x.get("of another") for x in (now, now["stacks"]["demo/dev"], got["role"], got["role"]["attrs"])], [[1]] * 4, "unknown ones stay")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(state, f, indent=2)
        s.aws.roles.pop(got["build_role"]["id"])
        s.good("destroy takes down what it has recorded", "destroy", "--yes")
        same(s.aws.left(), {}, "leaves nothing")


def described(project):
    return (f"project: {project}\nregion: {REGION}\nrole: {{name: {project}-exec}}\n"
            f"image: {{name: {project}-image, guest_dir: ../guest}}\n")


def stacks(r):
    return [(x["project"], x["stack"], "error" in x) for x in json.loads(r.stdout)["stacks"]]


def several():
    """Stacks of a folder of files with several documents, at the same time."""
    with Stack() as s:
        os.mkdir(os.path.join(s.home.path, "stacks"))
        s.write("stacks/1.yaml", described("one"))
        s.write("stacks/2.yml", described("two") + "---\n" + described("three"))
        s.write("stacks/notes.txt", "no: yaml")
        s.aws.slow, s.aws.together = 0, {"one-image", "two-image", "three-image"}
        r = s.good("up, whose builds wait for each other", "up", "-f", "stacks")
        same([x for x in r.stdout.decode().splitlines() if x.endswith(":")], [f"{p}/dev in {REGION}:" for p in ("one", "two", "three")],
             "the outputs come in the order of the files")
        s.aws.together = set()
        same({k: len(v) for k, v in s.aws.left().items()}, {"roles": 6, "buckets": 3, "images": 3}, "each has its own")
        before = len(s.aws.calls)
        r = s.good("one after the other", "up", "-f", "stacks", "-p", "1", "--rebuild", "--json")
        same([c for c in s.aws.calls[before:] if c in ("GetCallerIdentity", "UpdateMicrovmImage")],
             ["GetCallerIdentity", "UpdateMicrovmImage"] * 3, "as -p 1 says")
        same(stacks(r), [("one", "dev", False), ("two", "dev", False), ("three", "dev", False)], "JSON has them all")
        r = s.asb("preview", "-f", "stacks/2.yml", "-f", "stacks/1.yaml", "--stack", "qa", "--json")
        same(stacks(r), [("two", "qa", False), ("three", "qa", False), ("one", "qa", False)], "--stack, and files as they are named")
        s.write("stacks/3.yaml", described("four").replace("../guest", "../nothing"))
        r = s.asb("up", "-f", "stacks", "--parallelism", "2", "--json")
        same((r.returncode, stacks(r)), (1, [("one", "dev", False), ("two", "dev", False), ("three", "dev", False), ("four", "dev", True)]),
             "one that fails does not stop the others")
        os.unlink(os.path.join(s.home.path, "stacks/3.yaml"))
        s.write("stacks/1.yaml", described("two"))
        r = s.asb("up", "-f", "stacks")
        same((r.returncode, one_line(r.stderr)), (1, ["error: stacks/2.yml:1: two/dev is described in stacks/1.yaml:1 already"]),
             "the same stack twice is refused")
        s.write("stacks/1.yaml", described("one"))
        same(s.asb("up", "-p", "999").returncode, 2, "-p has a limit")
        r = s.good("destroy", "destroy", "-f", "stacks", "--yes", "--json")
        same((stacks(r), s.aws.left()), ([("one", "dev", False), ("two", "dev", False), ("three", "dev", False)], {}), "leaves nothing")
        several_killed(s)


def several_killed(s):
    with s.aws.lock:
        p = s.home.start("infra", "up", "-f", "stacks", cwd=s.home.path)
        s.aws.kill = (p.pid, 40)
    p.communicate(timeout=60)
    same(p.returncode, -signal.SIGKILL, "kill -9 in the middle of several")
    for _ in range(100):  # its processes end with it, each when it is next run
        r = s.asb("up", "-f", "stacks")
        if b"another asb infra is at work" not in r.stderr:
            break
        time.sleep(0.1)
    ok(r.returncode == 0, "the next up goes on", r.stderr)
    same({k: len(v) for k, v in s.aws.left().items()}, {"roles": 6, "buckets": 3, "images": 3}, "everything is there once")
    s.good("destroy", "destroy", "-f", "stacks", "--yes")
    same(s.aws.left(), {}, "leaves nothing")


def kill_points(s):
    """The calls of an unbroken `up` after which others are killed: every third (ASB_SLOW: every one), the last, and each that makes something."""
    s.good("an unbroken up", "up")
    ops = list(s.aws.calls)
    s.good("and its end", "destroy", "--yes")
    made = {op for op in ops if op.startswith("Create") or op in ("PUT bucket", "PUT object")}
    same(sorted(made), ["CreateMicrovmImage", "CreateNetworkConnector", "CreateRole", "CreateSecurityGroup", "PUT bucket", "PUT object"],
         "which makes every kind of resource")
    return [(n, op) for n, op in enumerate(ops) if n % STEP == 0 or op in made or n == len(ops) - 1]


def killed():
    """kill -9 after each call of up, then up again: everything is there once, recorded, and destroy leaves nothing."""
    with Stack(EGRESS) as s:
        s.aws.slow, bad, died = 0, [], []
        points = kill_points(s)
        for n, _ in points:
            with s.aws.lock:  # no call is answered, and counted, before it is said which is the last
                p = subprocess.Popen([ASB, "infra", "up"], cwd=s.home.path, env=s.home.env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
                s.aws.kill = (p.pid, n)
            p.wait(timeout=60)
            s.aws.kill = None
            if p.returncode == -signal.SIGKILL:
                died.append((n, s.aws.calls[-1]))
            again = s.asb("up")
            left = {k: len(v) for k, v in s.aws.left().items()}
            ours = [v for v in s.record()["resources"].values() if v["managed"] and "creating" not in v["attrs"]]
            if again.returncode or left != {"roles": 3, "groups": 1, "buckets": 1, "images": 1, "connectors": 1} or len(ours) != 8:
                bad.append((n, left, len(ours), again.stderr[-300:]))
            r = s.asb("destroy", "--yes")
            if r.returncode or s.aws.left():
                bad.append((n, "destroy", s.aws.left(), r.stderr[-300:]))
        same(bad, [], "killed after each call, up goes on and destroy leaves nothing")
        same(died, points, f"it was killed after each of these {len(points)}")


whole_life()
before_us()
goes_wrong()
preflight()
python_record()
somebody_quicker()
several()
killed()
done()
