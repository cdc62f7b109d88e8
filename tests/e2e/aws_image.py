#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 300
"""asb image on AWS against a stand-in for an account (tests/aws/account.py), which checks each request: init, build, its failures, uploads in
parts, ls, inspect, rm, prune."""
import io
import json
import os
import time
import zipfile

from _asb import done, ok, same
from _account import ACCOUNT, REGION, AccountHome
from images import MANAGED

GOOD = b"FROM public.ecr.aws/lambda/microvms:al2023-minimal\nENTRYPOINT [\"/asb-init\"]\n"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/build"


def arn(name):
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:microvm-image:{name}"


class Cloud(AccountHome):
    """With a guest folder, a bucket and a role."""

    def __init__(self):
        super().__init__(AWS_REGION=REGION, AGENT_SANDBOX_BACKEND="aws")
        self.aws.buckets["b"] = {"owner": ACCOUNT, "objects": {}, "versions": [], "settings": {}}
        self.bucket = self.aws.buckets["b"]
        self.aws.roles["build"] = {"refusals": 0}
        self.aws.slow = 0
        self.write("guest/Dockerfile", GOOD)

    def asb(self, *args, **kw):
        del self.aws.calls[:]
        return self.home.call("image", *args, cwd=self.home.path, **kw)

    def build(self, *args, name="app", **kw):
        return self.asb("build", "guest", "--name", name, "--bucket", "b", "--role", ROLE, *args, **kw)

    def fails(self, name, text, r):
        ok(r.returncode in (1, 2) and text.encode() in r.stderr, name, r.returncode, r.stdout, r.stderr)
        return r


def builds():
    with Cloud() as s:
        s.write("guest/.env", b"SECRET=1\n")
        s.write("guest/.git/config", b"x")
        s.write("guest/skip.me", b"x")
        s.write("guest/.dockerignore", b"skip.*\n")
        r = s.build()
        same((r.returncode, r.stdout), (0, b"app:1\n"), "build prints NAME:VERSION")
        key, = s.bucket["objects"]
        ok(key.startswith("microvm-images/app-") and key.endswith(".zip"), "the object is named after its content", key)
        same(sorted(zipfile.ZipFile(io.BytesIO(s.bucket["objects"][key])).namelist()), [".dockerignore", "Dockerfile"], "without secrets and what is ignored")
        v = s.aws.images[arn("app")]["versions"]["1.0"]
        same((v["codeArtifact"]["uri"], v["buildRoleArn"], v["baseImageArn"]), (f"s3://b/{key}", ROLE, MANAGED), "made of it, on the newest base")
        same(v["logging"], {"cloudWatch": {"logGroup": "/aws/lambda-microvms/app"}}, "with a log")
        same((v["hooks"]["port"], v["hooks"]["microvmImageHooks"]["ready"]), (9000, "ENABLED"), "and hooks")
        same(s.aws.images[arn("app")]["tags"], {"agent-sandbox-image": "app"}, "tagged as ours")
        r = s.build()
        same((r.returncode, r.stdout), (0, b"app:1\n"), "the same content again")
        ok(b"has this content already" in r.stderr and not {"PUT object", "UpdateMicrovmImage"} & set(s.aws.calls), "builds nothing", s.aws.calls)
        same(s.build("--rebuild").stdout, b"app:2\n", "unless it is to")
        ok("PUT object" not in s.aws.calls, "and uploads nothing that is there", s.aws.calls)
        r = s.build("-m", "4g", "--json")
        same((json.loads(r.stdout), s.aws.images[arn("app")]["versions"]["3.0"]["resources"]), ({"image": "app:3", "unchanged": False},
             [{"minimumMemoryInMiB": 4096}]), "another size is another version")
        s.write("guest/more", b"more")
        same(s.build("-m", "4g").stdout, b"app:4\n", "another content, too")
        same(len(s.bucket["objects"]), 2, "under a name of its own")
        s.aws.images[arn("app")].update(state="UPDATING", waits=99)
        s.fails("one that is being built", "is UPDATING already", s.build("--rebuild"))


def in_parts():
    with Cloud() as s:
        big = os.urandom(18 << 20)
        s.write("guest/big", big)
        same(s.build().stdout, b"app:1\n", "a large one")
        same([c for c in s.aws.calls if "part" in c or "upload" in c], ["POST uploads", *["PUT partNumber"] * 3, "POST uploadId"], "goes in parts")
        data, = s.bucket["objects"].values()
        ok(zipfile.ZipFile(io.BytesIO(data)).read("big") == big, "and arrives whole")
        s.write("guest/big", big[1:])
        s.aws.faults["PUT partNumber"] = [(403, "AccessDenied")]
        s.fails("a part that is refused", "UploadPart", s.build())
        same((s.bucket["uploads"], len(s.bucket["objects"])), ([], 1), "leaves no half upload")
        s.bucket["complete_fails"] = {"Code": "InternalError", "Message": "We encountered an internal error. Please try again."}
        s.fails("a failure within a success", "CompleteMultipartUpload: We encountered an internal error. Please try again. (InternalError)", s.build())
        for error in ({"Code": "InternalError"}, {"Code": "InternalError", "Message": ""}):
            s.bucket["complete_fails"] = error
            s.fails("one that AWS has no words for", "CompleteMultipartUpload: it has failed (InternalError)", s.build())
        same((s.bucket["uploads"], len(s.bucket["objects"])), ([], 1), "neither")
        s.aws.faults["PUT partNumber"] = [(503, "SlowDown")]
        same(s.build().stdout, b"app:2\n", "a part that is sent again")


def failing():
    with Cloud() as s:
        group, now = "/aws/lambda-microvms/app", int(time.time() * 1000)
        s.aws.log = [(group, "2026/11/30[0.0]build", now - 7200000, "of an earlier build"),
                     (group, "2026/11/30[0.0]build", now, "#5 RUN make\n#5 make: not \x1b[31mfound"),
                     (group, "2026/11/30[1.0]microvm-1", now, "hello from version 1"),
                     (group, "2026/11/30[2.0]microvm-1", now, "hello from version 2"),
                     (group, "2026/11/30[0.0]build", now, "#5 ERROR: exit code 127")]
        s.aws.build_fails = True
        r = s.fails("a build that fails", "error: build: app:1: The container image build failed.", s.build())
        ok(b"  #5 make: not ?[31mfound\n  hello from version 1\n  #5 ERROR: exit code 127\n" in r.stderr and b"earlier" not in r.stderr
           and b"version 2" not in r.stderr, "shows its log", r.stderr)
        d = json.loads(s.build("--json").stdout)
        same((d["step"], d["error"]["code"], "exit code 127" in d["log"]), ("build", "unavailable", True), "also as JSON")
        ok("DeleteMicrovmImage" in s.aws.calls, "an image whose first build has failed is made anew", s.aws.calls)
        s.aws.build_fails, s.aws.log = False, []
        same(s.build().stdout, b"app:1\n", "and then it is there")
        s.aws.build_fails = True
        r = s.fails("a later one that fails", "app:2: The container image build failed.", s.build("--rebuild"))
        ok(b"has left no log in /aws/lambda-microvms/app: " in r.stderr, "without a log it says so", r.stderr)
        doc = json.loads(s.asb("inspect", "app").stdout)
        same((doc["latestActiveImageVersion"], doc["latestFailedImageVersion"], len(doc["versions"])), ("1.0", "2.0", 2), "the version before it stays")
        s.aws.build_fails = False
        same(s.build().stdout, b"app:3\n", "and the next may be good")


def refused():
    with Cloud() as s:
        for name in (".env", "guest.sh", "skip.me"):
            s.write("guest/" + name, b"x")
        s.write("guest/.dockerignore", b"skip.*\nDockerfile\n")
        for what, text, docker in (
                ("another platform", "Dockerfile:1: MicroVMs are arm64", b"FROM --platform=linux/amd64 debian\nCMD x\n"),
                ("an image of another one", "Dockerfile:2: MicroVMs are arm64", b"# x\nFROM amd64/debian:12\nCMD x\n"),
                ("no entry point", "neither ENTRYPOINT nor CMD", b"FROM a AS b\nCMD x\nFROM scratch\nCOPY --from=b /x /x\n"),
                ("hooks on another port", "Dockerfile:2: the hooks are called on port 9000: AGENTD_HOOK_PORT=9001", b"FROM a\nENV A=1 \\\n  AGENTD_HOOK_PORT=9001\nCMD x\n"),
                ("a file that is not there", "Dockerfile:2: what it copies is not in the folder, or left out of the zip: app.py", b"FROM a\nCOPY guest.sh app.py /\nCMD x\n"),
                ("one that is left out", "Dockerfile:2: what it copies is not in the folder, or left out of the zip: .env", b"FROM a\nCOPY .env /\nCMD x\n"),
                ("one that .dockerignore names", "left out of the zip: skip.me", b"FROM a\nCOPY skip.me /\nCMD x\n")):
            s.write("guest/Dockerfile", docker)
            ok(b"(--no-check builds it all the same)" in s.fails(what, text, s.build()).stderr, "and what would help")
        same(s.aws.calls, [], "is told before anything is asked of AWS")
        same(s.build("--no-check").stdout, b"app:1\n", "and built if that is wanted")
        s.write("guest/Dockerfile", b"FROM ours:\x1b1\nENV A=1\n")
        note = b"warning: Dockerfile:1: the last stage has neither ENTRYPOINT nor CMD: unless ours:?1 has one, nothing will answer the ready hook\n"
        r = s.build()
        ok(r.stdout == b"app:2\n" and note in r.stderr, "an image from elsewhere may have what it runs: a warning", r.stdout, r.stderr)
        ok(s.build().stderr.count(b"warning") == 0, "which is not told when nothing is built")
        ok(s.build("--rebuild", "--no-check").stderr.count(b"warning") == 0, "nor with --no-check")
        s.aws.build_fails = True
        r = s.fails("when it then fails", "error: build: app:4: ", s.build("--rebuild"))
        ok(r.stderr.startswith(note), "the warning comes before", r.stderr)
        s.aws.build_fails = False
        s.write("guest/Dockerfile", GOOD)
        s.fails("a size that there is not", "512m, 1g", s.build("-m", "3g"))
        s.fails("a bad name", "no image's name", s.build(name="a.b"))
        s.fails("no folder", "No such file", s.asb("build", "nowhere", "--name", "x", "--bucket", "b", "--role", ROLE))
        s.fails("no bucket", "asb infra has set up nothing", s.asb("build", "guest", "--name", "x"))
        s.fails("what is local", "--cpus is for the local backend", s.build("-c", "2"))
        s.fails("what is AWS's", "--managed is for the aws backend", s.asb("ls", "--backend", "local", "--managed"))
        outputs = {"build_bucket": "b", "build_role_arn": ROLE, "image_arn": arn("guest")}
        s.write(".agent_sandbox/infra-state.json", json.dumps({"stacks": {"p/dev": {"resources": {}, "outputs": outputs}}}).encode())
        r = s.asb("build", "guest", "--name", "other", env={**s.home.env, "AWS_REGION": ""})
        same(r.stdout, b"other:1\n", "bucket, role and region come from asb infra")
        s.write(".agent_sandbox/infra-state.json", json.dumps({"stacks": {x: {"resources": {}, "outputs": outputs} for x in ("p/a", "p/b")}}).encode())
        s.fails("several stacks", "several stacks", s.asb("build", "guest", "--name", "other"))


def lists():
    with Cloud() as s:
        r = s.asb("ls", "--json")
        same((r.returncode, json.loads(r.stdout)), (0, {"images": []}), "ls of nothing")
        for name in ("app", "app-2", "b"):
            s.build(name=name)
        r = s.asb("ls", "--json")
        same([(i["name"], i["version"], i["state"], i["arn"]) for i in json.loads(r.stdout)["images"]],
             [(n, 1, "CREATED", arn(n)) for n in ("app", "app-2", "b")], "ls")
        same(set(s.aws.calls), {"ListMicrovmImages"}, "with pages and nothing else")
        ok(b"app-2 " in s.asb("ls").stdout, "as a table")
        ok(MANAGED.encode() in s.asb("ls", "--managed").stdout, "those of AWS")
        same(json.loads(s.asb("inspect", "app:1").stdout)["builds"][0]["buildState"], "SUCCESSFUL", "inspect a version")
        same(json.loads(s.asb("inspect", arn("b"), env={**s.home.env, "AGENT_SANDBOX_BACKEND": ""}).stdout)["name"], "b", "by ARN, whatever the backend")
        s.fails("inspect what is not there", "not found", s.asb("inspect", "nobody"))
        s.build("--rebuild")
        s.aws.vms["microvm-1"] = {"image": arn("app"), "state": "SUSPENDED"}
        s.fails("rm of what a sandbox lives of", "sandboxes of app live: microvm-1", s.asb("rm", "app"))
        same(s.aws.vms["microvm-1"]["state"], "SUSPENDED", "leaves that alone")
        s.write(".agent_sandbox/state.json", json.dumps({"sandboxes": {"box": {"name": "box", "microvm_id": "microvm-2", "endpoint": None,
                                                                               "image_arn": arn("app"), "region": REGION}}}))
        for n in range(2, 9):
            s.aws.vms[f"microvm-{n}"] = {"image": arn("app"), "state": "RUNNING" if n < 8 else "TERMINATED"}
        s.fails("several are named as asb rm wants them, five at most", "of app live: microvm-1, box, microvm-3, microvm-4, microvm-5 and 2 more\n", s.asb("rm", "app"))
        for n in range(2, 9):
            del s.aws.vms[f"microvm-{n}"]
        s.build("--rebuild")
        s.aws.vms["microvm-2"] = {"image": arn("app"), "state": "TERMINATING", "version": "3.0"}
        same((s.asb("rm", "-f", "app:3").stdout, s.aws.calls.count("DeleteMicrovmImageVersion")), (b"removed app:3\n", 2), "one that is ending is waited for")
        same(s.asb("rm", "app:2").stdout, b"removed app:2\n", "another version can go")
        same(list(s.aws.images[arn("app")]["versions"]), ["1.0"], "and has gone")
        same(s.asb("rm", "-f", "app").stdout, b"removed app\n", "with --force the image, too")
        same((s.aws.vms["microvm-1"]["state"], arn("app") in s.aws.images), ("TERMINATED", False), "and its sandbox")
        s.fails("rm of what is not there", "not found", s.asb("rm", "app"))
        s.fails("the last version", "delete the entire image", s.asb("rm", "b:1"))


def pruned():
    with Cloud() as s:
        for n in range(5):
            s.write("guest/n", str(n))
            s.build()
        s.build("--rebuild")  # the sixth, of the fifth's zip
        zips = list(s.bucket["objects"])
        s.build(name="once")
        s.build(name="another")
        s.build("--rebuild", name="another")
        s.aws.images[arn("another")]["tags"] = {}
        s.bucket["objects"]["microvm-images/app-0123456789abcdef.zip"] = b"of nobody"
        image, versions = s.aws.images[arn("app")], s.aws.images[arn("app")]["versions"]
        versions["2.0"]["state"] = "FAILED"
        versions["3.0"]["codeArtifact"] = {"uri": "s3://b/elsewhere/app-0123456789abcdef.zip"}
        s.bucket["objects"]["elsewhere/app-0123456789abcdef.zip"] = b"not as asb calls it"
        s.aws.vms.update({"microvm-1": {"image": arn("app"), "state": "SUSPENDED", "version": "4.0"},
                          "microvm-2": {"image": arn("app"), "state": "TERMINATED", "version": "1.0"}})
        had = list(s.bucket["objects"])
        r = s.asb("prune")
        same((r.returncode, len(versions)), (2, 6), "prune does not go without being asked")
        go = [f"image app:{n}" for n in (1, 2, 3, 5)] + [f"artefact s3://b/{z}" for z in zips[:2]]
        r = s.asb("prune", "--dry-run")
        same(r.stdout.decode(), "".join(f"would remove {x}\n" for x in go), "--dry-run tells what would go")
        same((len(versions), len(s.bucket["objects"]), [c for c in s.aws.calls if c.startswith("DELETE") or c.startswith("Delete")]), (6, 9, []), "and removes nothing")
        s.write(".agent_sandbox/state.json", json.dumps({"sandboxes": {"new": {"name": "new", "microvm_id": "new-0", "endpoint": None,
                                                                               "image_arn": "app:3", "region": None}}}))
        ok(b"nothing to remove" in s.asb("prune", "-f").stderr and len(versions) == 6, "a create that begins keeps its image whole")
        os.unlink(os.path.join(s.home.path, ".agent_sandbox/state.json"))
        image["state"], image["waits"] = "UPDATING", 99
        ok(b"nothing to remove" in s.asb("prune", "-f").stderr, "and so does a build")
        image["state"], s.aws.slow = "UPDATED", 1
        s.aws.faults["DeleteMicrovmImageVersion"] = [(403, "AccessDeniedException")]
        s.fails("a deletion that is refused", "app:1.0: ", s.asb("prune", "-f"))
        r = s.asb("prune", "-f", "--json")
        d = json.loads(r.stdout)
        same((r.returncode, [f"{x['kind']} {x['name']}" for x in d["removed"]], "bytes" in d, d["dry_run"]), (0, go, False, False), "prune")
        same(list(versions), ["4.0", "6.0"], "leaves the active version, and what a sandbox lives of")
        same([z for z in had if z not in s.bucket["objects"]], zips[:2], "and zips that are of others")
        same([len(s.aws.images[arn(n)]["versions"]) for n in ("once", "another")], [1, 2], "and images without our tag")
        ok(b"nothing to remove" in s.asb("prune", "-f").stderr, "then there is nothing")
        s.fails("an option of AWS", "--region is for the aws backend", s.asb("prune", "--backend", "local", "--region", REGION))
        r = s.asb("prune", "-f", "--backend", "local")
        ok(r.returncode == 0 and s.aws.calls == [], "--backend local asks AWS for nothing", r.stderr, s.aws.calls)


NAMES = [".dockerignore", "Dockerfile", "README.md", "agentd", "asb-hooks", "asb-init"]


def scaffold():
    with Cloud() as s:
        new = os.path.join(s.home.path, "new")
        r = s.asb("init", "new")
        same((r.returncode, r.stdout, sorted(os.listdir(new))), (0, b"wrote new\n", NAMES), "init writes a folder")
        for name in ("asb-init", "agentd", "asb-hooks"):
            with open(os.path.join(new, name), "rb") as f:
                head = f.read(20)
            same((head[:5], head[18:20], os.access(f.name, os.X_OK)), (b"\x7fELF\x02", b"\xb7\x00", True), f"{name} is a program for aarch64")
        r = s.asb("build", "new", "--name", "app", "--bucket", "b", "--role", ROLE)
        same((r.returncode, r.stdout), (0, b"app:1\n"), "which builds")
        data, = s.bucket["objects"].values()
        z = zipfile.ZipFile(io.BytesIO(data))
        same(([i.filename for i in z.infolist()], {oct(i.external_attr >> 16 & 0o777) for i in z.infolist() if i.filename.startswith("a")}),
             ([n for n in NAMES if n != "README.md"], {"0o755"}), "from what belongs in")
        s.fails("once more", "new/Dockerfile is there already", s.asb("init", "new"))
        s.write("other/agentd", b"mine")
        s.fails("a file of one's own", "other/agentd is there already", s.asb("init", "other"))
        same(os.listdir(os.path.join(s.home.path, "other")), ["agentd"], "and nothing is written beside it")
        s.write("third/mine", b"x")
        r = s.asb("init", "third", "--from", "docker.io/library/debian:12-slim", "--json")
        same((r.returncode, json.loads(r.stdout)["folder"], sorted(json.loads(r.stdout)["files"])), (0, "third", NAMES), "init in a folder with something else, on another image")
        with open(os.path.join(s.home.path, "third/Dockerfile"), "rb") as f:
            text = f.read()
        ok(b"\nFROM docker.io/library/debian:12-slim\nCOPY " in text and b"public.ecr" not in text, "that is in its Dockerfile", text)
        same(s.asb("build", "third", "--name", "third", "--bucket", "b", "--role", ROLE).stdout, b"third:1\n", "and it builds, too")
        s.fails("an image of another platform", "MicroVMs are arm64", s.asb("init", "no", "--from", "amd64/debian"))
        s.fails("what is no image", "'a b' is no image's name", s.asb("init", "no", "--from", "a b"))
        s.fails("a folder that cannot be made", "cannot make no/where: No such file", s.asb("init", "no/where"))
        s.fails("no folder", "Not a directory", s.asb("init", "third/mine"))
        r = s.asb("init", "no", env={**s.home.env, "ASB_SHARE": s.home.path})
        s.fails("an asb without its guest", "/aws, where asb has the guest", r)
        os.makedirs(os.path.join(s.home.path, "aws"))
        for name in ("Dockerfile", ".dockerignore", "README.md", "asb-init"):
            s.write("aws/" + name, b"x")
        s.fails("half of it", "the guest's agentd is not installed with asb", s.asb("init", "no", env={**s.home.env, "ASB_SHARE": s.home.path}))
        ok(not os.path.exists(os.path.join(s.home.path, "no")), "and a folder that was made goes again")


for test in (scaffold, builds, in_parts, failing, refused, lists, pruned):
    test()
done()
