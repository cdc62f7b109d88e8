#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""Sandboxes on AWS, against a stand-in that checks every request against the service model and its signature: from create to
rm, what is refused before any call, and that nothing stays behind."""
import json
import os
import stat
import time

from _aws import IMAGE, Cloud, Fault, done, ok, one_line, same

ROLE = "arn:aws:iam::123456789012:role/run"
MANAGED = "arn:aws:lambda:us-east-1:aws:network-connector:aws-network-connector:"
OWN = "arn:aws:lambda:us-east-1:123456789012:network-connector:nc-"


def lifecycle(cloud):
    aws = cloud.aws
    r = cloud.call("create", "app", "--image", IMAGE, "--role", ROLE)
    same(r.returncode, 0, "create")
    vm = list(aws.vms)[0]
    same(r.stdout.decode(), f"created app ({vm})\n", "says so")
    ok(b"runs on the aws backend" in r.stderr, "and where", r.stderr)
    run = next(p for op, p in aws.calls if op == "RunMicrovm")
    same((run["idlePolicy"], run["maximumDurationInSeconds"], run["executionRoleArn"]),
         ({"maxIdleDurationSeconds": 900, "suspendedDurationSeconds": 28800, "autoResumeEnabled": True}, 28800, ROLE),
         "defaults are sent")
    same((run["logging"], run["ingressNetworkConnectors"]),
         ({"cloudWatch": {"logGroup": "/aws/lambda-microvms/guest"}},
          [MANAGED + "HTTP_INGRESS"]), "logging and ingress too")
    same(cloud.state()["app"], {"name": "app", "microvm_id": vm, "endpoint": aws.vms[vm]["endpoint"], "image_arn": IMAGE,
                                "region": "us-east-1"}, "the record has the Python project's five members")
    r = cloud.call("create", "app", "--image", IMAGE)
    same((r.returncode, len(aws.vms)), (1, 1), "a second one of the name is refused, and not made")
    r = cloud.call("inspect", "app")
    same(json.loads(r.stdout)["microvmId"], vm, "inspect is AWS's own description")
    r = cloud.call("ps", "app")
    same(r.stdout.decode(), f"app: RUNNING ({vm})\n", "ps")
    r = cloud.call("stop", "app")
    same((r.returncode, r.stdout, aws.vms[vm]["state"]), (0, b"suspended app\n", "SUSPENDED"), "stop waits for it")
    same(cloud.call("stop", "app").returncode, 0, "stopped already is fine")
    r = cloud.call("start", "app")
    same((r.returncode, r.stdout, aws.vms[vm]["state"]), (0, b"resumed app\n", "RUNNING"), "start")
    r = cloud.call("rm", "app")
    same((r.returncode, r.stdout, cloud.living(), cloud.state()), (0, b"removed app\n", [], {}), "rm")
    r = cloud.call("inspect", vm)
    ok(r.returncode == 0 and json.loads(r.stdout)["state"].startswith("TERMINAT"), "an id is a name too", r.stdout)


def listing(cloud):
    aws = cloud.aws
    for name in ("one", "two"):
        same(cloud.call("create", name, "--image", IMAGE).returncode, 0, f"create {name}")
    stray = aws.RunMicrovm({"clientToken": "other", "imageIdentifier": IMAGE})["microvmId"]
    aws.vms[stray]["state"] = "RUNNING"
    aws.page_size, aws.empty_pages = 1, True
    aws.calls.clear()
    rows = json.loads(cloud.call("ls", "--json").stdout)["sandboxes"]
    same([(x["name"], x["state"], x["backend"]) for x in rows], [("one", "RUNNING", "aws"), ("two", "RUNNING", "aws")], "ls")
    ok(aws.count("ListMicrovms") > 2 and aws.count("GetMicrovm") == 0, "page after page, an empty one too, and no call for each",
       aws.calls)
    aws.page_size, aws.empty_pages = 50, False
    aws.calls.clear()
    text = cloud.call("ls", "--all").stdout.decode()
    ok(stray in text and "one" in text, "ls --all has the one without a name", text)
    same(len(aws.calls), 1, "by one call")
    aws.vms[stray]["state"] = "TERMINATED"
    ok(stray not in cloud.call("ls", "-a").stdout.decode(), "but not when it has ended")
    aws.vms.pop(cloud.state()["two"]["microvm_id"])
    rows = json.loads(cloud.call("ls", "--json").stdout)["sandboxes"]
    same([x["state"] for x in rows], ["RUNNING", "MISSING"], "one that AWS has forgotten is MISSING")
    r = cloud.call("ls", env={"AWS_SECRET_ACCESS_KEY": "wrong"})
    ok(r.returncode == 0 and b"UNKNOWN" in r.stdout and b"signature" in r.stderr, "ls without AWS says so", r.stderr)
    r = cloud.call("rm", "one", "two")
    same((r.returncode, cloud.state(), cloud.living()), (0, {}, []), "rm, of a missing one too")


def names(cloud):
    """Of images, and of regions."""
    aws = cloud.aws
    aws.ListMicrovmImages = lambda p: {"items": [{"name": n, "imageArn": aws.image(n), "state": "CREATED", "createdAt": 1.5}
                                                 for n in ("guest-2", "guest") if p["nameFilter"] in n], "nextToken": None}
    r = cloud.call("create", "named", "--backend", "aws", "--image", "guest:3")
    run = [p for op, p in aws.calls if op == "RunMicrovm"][-1]
    same((r.returncode, run["imageIdentifier"], run["imageVersion"]), (0, IMAGE, "3.0"), "an image by name and version")
    cloud.call("rm", "named")
    r = cloud.call("create", "x", "--backend", "aws", "--image", "gues")
    ok(r.returncode == 1 and b"there is no image 'gues'" in r.stderr, "part of a name is no name", r.stderr)
    r = cloud.call("create", "byenv", env={"AGENT_SANDBOX_IMAGE_ARN": IMAGE, "AGENT_SANDBOX_EXECUTION_ROLE_ARN": ROLE})
    run = [p for op, p in aws.calls if op == "RunMicrovm"][-1]
    same((r.returncode, run["executionRoleArn"]), (0, ROLE), "image and role from the environment")
    cloud.call("rm", "byenv")
    ingress(cloud)
    r = cloud.call("create", "other", "--image", IMAGE, env={"AWS_REGION": "eu-west-1"})
    same(r.returncode, 0, "the ARN's region counts, not the configured one")
    same(cloud.call("rm", "other", env={"AWS_REGION": "eu-west-1"}).returncode, 0, "and then the record's")
    r = cloud.call("create", "timed", "--image", IMAGE, "--idle-timeout", "61", "--max-duration", "600")
    run = [p for op, p in aws.calls if op == "RunMicrovm"][-1]
    same((r.returncode, run["idlePolicy"]["maxIdleDurationSeconds"], run["maximumDurationInSeconds"]), (0, 61, 600), "its times")
    cloud.call("rm", "timed")
    r = cloud.call("create", "vars", "--image", IMAGE, "-e", "A=1", "-e", "B=x y", "-e", "A=2")
    run = [p for op, p in aws.calls if op == "RunMicrovm"][-1]
    same((r.returncode, json.loads(run["runHookPayload"])), (0, {"env": {"A": "2", "B": "x y"}}), "variables go to the run hook")
    cloud.call("rm", "vars")


def places(cloud):
    """--region and --profile, wherever a sandbox is named."""
    home = cloud.home.path
    os.makedirs(os.path.join(home, ".aws"), exist_ok=True)
    with open(os.path.join(home, ".aws/config"), "w", encoding="utf-8") as f:
        f.write(f"[profile work]\nregion = us-east-1\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {cloud.aws.keys['AKIDEXAMPLE'][0]}\n")
    wrong = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDWRONG", "AWS_SECRET_ACCESS_KEY": "x"}
    there = ["--region", "us-east-1", "--profile", "work"]
    def works(name, *words, **kw):
        r = cloud.call(*words, *there, env=wrong, **kw)
        same((r.returncode, b"" if r.returncode == 0 else r.stderr), (0, b""), f"{name} --region --profile")
        return r
    works("create", "create", "app", "--image", IMAGE)
    for words in ("ps app", "inspect app", "stop app", "start app", "execs app", "metrics app", "shell app", "ls -a"):
        works(words.split()[0], *words.split(), input=b"")
    same(cloud.call("exec", *there, "app", "echo", "hi", env=wrong).stdout, b"hi\n", "exec --region --profile")
    text = cloud.call("doctor", *there, env=wrong).stdout.decode()
    ok("from profile work" in text and "us-east-1 (given)" in text, "doctor --region --profile", text)
    r = cloud.call("ps", "app", env=wrong)
    ok(r.returncode == 1 and b"security token" in r.stderr, "without them the environment counts", r.stderr)
    r = cloud.call("rm", "app", "--region", "eu-west-1")
    ok(r.returncode == 1 and b"'app' is in us-east-1, not in eu-west-1" in r.stderr and "app" in cloud.state(),
       "a region in which it is not is refused: rm would forget what it cannot find", r.stderr)
    vm = cloud.state()["app"]["microvm_id"]
    same(works("ps", "ps", vm).stdout, f"app: RUNNING ({vm})\n".encode(), "ps by the id")
    works("rm", "rm", "app")
    r = cloud.call("create", "app", "--image", IMAGE, "--profile", "nope")
    ok(r.returncode == 1 and b"'nope'" in r.stderr and cloud.state() == {}, "a profile that is not there", r.stderr)
    os.unlink(os.path.join(home, ".aws/config"))


def garbage(cloud):
    """gc: what lives against what is recorded."""
    aws = cloud.aws
    def stray(age):
        vm = aws.vms[aws.RunMicrovm({"clientToken": f"stray-{len(aws.vms)}", "imageIdentifier": IMAGE})["microvmId"]]
        vm.update(state="RUNNING", startedAt=time.time() - age)
        return vm
    cloud.call("create", "kept", "--image", IMAGE)
    cloud.call("create", "gone", "--image", IMAGE)
    aws.vms[cloud.state()["kept"]["microvm_id"]]["startedAt"] -= 9000
    aws.vms[cloud.state()["gone"]["microvm_id"]].update(state="TERMINATED", stateReason="Success.")
    old, new = stray(9000), stray(0)
    r = cloud.call("gc", "--dry-run")
    lines = r.stdout.decode().splitlines()
    ok(r.returncode == 0 and len(lines) == 2 and lines[0].startswith(f"would end {old['microvmId']} (guest, us-east-1, since 20")
       and lines[1].startswith("would forget gone (") and b"1 started within the last 3 minutes" in r.stderr, "gc --dry-run", lines, r.stderr)
    r = cloud.call("gc")
    ok(r.returncode == 2 and b"-y says so" in r.stderr and old["state"] == "RUNNING" and "gone" in cloud.state(),
       "nobody to ask: nothing is ended", r.stderr)
    aws.faults.append(Fault("ListMicrovms", times=9, status=403, kind="AccessDeniedException", body={"message": "no list"}))
    r = cloud.call("gc", "--yes")
    ok(r.returncode == 1 and b"no list" in r.stderr and "gone" in cloud.state(), "a list that is refused is no empty list", r.stderr)
    aws.faults.clear()
    aws.faults.append(Fault("TerminateMicrovm", times=9, status=403, kind="AccessDeniedException", body={"message": "denied"}))
    r = cloud.call("gc", "--yes")
    ok(r.returncode == 1 and b"denied" in r.stderr and old["state"] == "RUNNING", "one that cannot be ended is told", r.stderr)
    aws.faults.clear()
    r = cloud.call("gc", "--yes", "--json")
    doc = json.loads(r.stdout)
    same((r.returncode, [x["id"] for x in doc["ended"]], [x["name"] for x in doc["forgotten"]]), (0, [old["microvmId"]], ["gone"]), "gc --yes --json")
    same((old["state"], new["state"], list(cloud.state())), ("TERMINATING", "RUNNING", ["kept"]), "and so it is: the names, too")
    same(cloud.call("gc").stdout, b"", "nothing is left to collect")
    aws.vms.pop(new["microvmId"])
    cloud.call("rm", "kept")


def ingress(cloud):
    aws = cloud.aws
    for words, want in ((["http", "shell"], [MANAGED + "HTTP_INGRESS", MANAGED + "SHELL_INGRESS"]), (["all"], [MANAGED + "ALL_INGRESS"]),
                        ([MANAGED + "HTTP_INGRESS", OWN + "1"], [MANAGED + "HTTP_INGRESS", OWN + "1"])):
        r = cloud.call("create", "in", "--image", IMAGE, *[w for x in words for w in ("--ingress", x)])
        same((r.returncode, [p for op, p in aws.calls if op == "RunMicrovm"][-1]["ingressNetworkConnectors"]), (0, want), f"--ingress {words}")
        same(cloud.call("exec", "in", "echo", "hi").stdout, b"hi\n", "lets asb exec in")
        cloud.call("rm", "in")
    for word in ("none", "shell"):
        before = len(aws.calls)
        r = cloud.call("create", "in", "--image", IMAGE, "--ingress", word)
        same((r.returncode, [op for op, _ in aws.calls[before:]].count("CreateMicrovmAuthToken")), (0, 0), f"with --ingress {word} alone nobody waits for the agent")
        same(cloud.call("rm", "in").returncode, 0, "and it is ended as any other")
        r = cloud.call("run", "--backend", "aws", "--ingress", word, IMAGE, "true")
        ok(r.returncode == 2 and b"asb run reaches its command by http" in r.stderr, "but asb run needs the agent", r.returncode, r.stderr)


REFUSED = [
    (["--image", IMAGE.replace("image:guest", "image/guest")], b"colon"),
    (["--image", "arn:aws:lambda:us-east-1:123456789012:function:guest"], b"does not name a MicroVM image"),
    (["--image", "arn:aws:s3:::bucket"], b"not an image's ARN"),
    (["--image", "arn:aws:lambda:us-east-1:1234:microvm-image:guest"], b"not an image's ARN"),
    (["--image", IMAGE, "--region", "eu-west-1"], b"not in eu-west-1"),
    (["--image", IMAGE, "--role", "run"], b"not a role's ARN"),
    (["--image", IMAGE, "--role", "arn:aws:iam::123456789012:user/x"], b"not a role's ARN"),
    (["--image", IMAGE, "--egress-connector", "arn:aws:lambda:eu-west-1:123456789012:network-connector:nc-1"], b"not in the image's region"),
    (["--image", IMAGE, "--egress-connector", "nc-1"], b"not a network connector's ARN"),
    (["--image", IMAGE, "--ingress", "https"], b"neither http, shell, all or none"),
    (["--image", IMAGE, "--ingress", "http", "--ingress", "http"], b"given twice"),
    (["--image", IMAGE, "--ingress", "http", "--ingress", MANAGED + "HTTP_INGRESS"], b"given twice"),
    (["--image", IMAGE, "--ingress", "shell", "--ingress", "all"], b"'all' goes with no other"),
    (["--image", IMAGE, "--ingress", "none", "--ingress", "http"], b"'none' goes with no other"),
    (["--image", IMAGE, "--ingress", MANAGED + "TCP_INGRESS"], b"AWS has no connector"),
    (["--image", IMAGE, "--ingress", MANAGED + "INTERNET_EGRESS"], b"AWS has no connector"),
    (["--image", IMAGE, "--ingress", "arn:aws:lambda:eu-west-1:123456789012:network-connector:nc-1"], b"not in the image's region"),
    (["--image", IMAGE, "--ingress", "arn:aws:lambda:us-east-1:123456789012:function:x"], b"not a network connector's ARN"),
    (["--image", IMAGE] + [w for n in range(11) for w in ("--ingress", OWN + str(n))], b"takes 10 at most"),
    (["--image", "guest", "--backend", "aws", "--ingress", "https"], b"neither http"),
    (["--image", "base", "--backend", "local", "--ingress", "http"], b"aws backend"),
    (["--image", IMAGE, "--memory", "1g"], b"--memory"),
    (["--image", IMAGE, "--cpus", "2"], b"--cpus"),
    (["--image", IMAGE, "--net", "none"], b"--net"),
    (["--image", IMAGE, "--idle-timeout", "30"], b"--idle-timeout"),
    (["--image", IMAGE, "--max-duration", "30000"], b"--max-duration"),
    (["--image", IMAGE, "-e", "A=" + "x" * 4090], b"at most 4096"),
    (["--image", "base", "--backend", "local", "--role", ROLE], b"aws backend"),
    (["--image", "base", "--backend", "local", "--profile", "x"], b"aws backend"),
    (["--image", IMAGE, "--backend", "local"], b"aws backend"),
    (["--backend", "aws"], b"needs an image"),
    (["--backend", "aws", "--image", "a b"], b"not an image's name"),
    (["--backend", "aws", "--image", "guest:x"], b"NAME:VERSION"),
]


def refusals(cloud):
    cloud.aws.calls.clear()
    cloud.aws.refused.clear()
    for words, text in REFUSED:
        r = cloud.call("create", "no", *words)
        ok(r.returncode in (1, 2) and text in r.stderr and len(one_line(r.stderr)) == 1, f"refused: {text.decode()}", r.stderr)
    r = cloud.call("create", "no", "--image", IMAGE.replace("us-east-1", "us-west-1"), env={"AWS_ENDPOINT_URL": ""})
    ok(r.returncode == 1 and b"no Lambda MicroVMs in us-west-1" in r.stderr, "a region without the service", r.stderr)
    same((cloud.aws.calls, cloud.aws.refused, cloud.state()), ([], [], {}), "all before any call, and nothing is recorded")
    for words in (["branch", "app", "--name", "b"], ["restart", "app"]):
        cloud.call("create", "app", "--image", IMAGE)
        r = cloud.call(*words)
        ok(r.returncode == 1 and b"the aws backend cannot" in r.stderr, f"asb {words[0]} is refused by name", r.stderr)
    cloud.call("rm", "app")
    r = cloud.call("rm", "never-there")
    ok(r.returncode == 1 and not cloud.aws.refused, "a name that is not there asks nobody", r.stderr)


def failures(cloud):
    """Nothing bills after a create that failed."""
    aws = cloud.aws
    aws.faults.append(Fault("RunMicrovm", status=402, kind="ServiceQuotaExceededException", body={
        "message": "The base maximum allocated memory limit has been reached for this account.", "quotaCode": None}))
    aws.sent.clear()
    r = cloud.call("create", "app", "--image", IMAGE)
    ok(r.returncode == 1 and b"memory limit has been reached" in r.stderr and b"request req-" in r.stderr, "402 in AWS's words", r.stderr)
    same((len(aws.sent), cloud.state()), (1, {}), "it is asked once, and the name is free")
    original = aws.RunMicrovm
    def dies(p):
        answer = original(p)
        aws.vms[answer["microvmId"]]["~becomes"] = "TERMINATED"
        return answer
    aws.RunMicrovm = dies
    r = cloud.call("create", "app", "--image", IMAGE)
    ok(r.returncode == 1 and b"Run lifecycle hook returned HTTP status 400" in r.stderr, "one that ends at once tells why", r.stderr)
    same((cloud.state(), cloud.living()), ({}, []), "and is gone")
    aws.RunMicrovm = original
    aws.start_after = 1000
    r = cloud.call("create", "app", "--image", IMAGE, "--start-timeout", "1")
    ok(r.returncode == 1 and b"not RUNNING" in r.stderr, "one that does not start", r.stderr)
    same((cloud.state(), cloud.living()), ({}, []), "is ended")
    child = cloud.home.start("create", "app", "--image", IMAGE)
    end = time.monotonic() + 30
    while not cloud.living() and time.monotonic() < end:
        time.sleep(0.02)
    child.terminate()
    child.communicate(timeout=60)
    same((child.returncode, cloud.state(), cloud.living()), (-15, {}, []), "interrupted: it is ended, and asb by the signal")
    aws.faults.append(Fault("TerminateMicrovm", times=9, status=403, kind="AccessDeniedException", body={"message": "no"}))
    r = cloud.call("create", "app", "--image", IMAGE, "--start-timeout", "1")
    ok(r.returncode == 1 and b"may still cost" in r.stderr, "one that cannot be ended is told", r.stderr)
    same(list(cloud.state()), ["app"], "and its record stays")
    r = cloud.call("rm", "app")
    same((r.returncode, list(cloud.state())), (1, ["app"]), "rm fails as long as AWS refuses")
    aws.faults.clear()
    aws.start_after = 1
    r = cloud.call("rm", "app")
    same((r.returncode, cloud.state(), cloud.living()), (0, {}, []), "and then removes it")


def killed(cloud):
    """kill -9 while AWS is asked: the record tells of it, and nothing is silently lost."""
    aws = cloud.aws
    aws.faults.append(Fault("RunMicrovm", late=30, cut=True))
    child = cloud.home.start("create", "app", "--image", IMAGE)
    end = time.monotonic() + 30
    while not aws.faults[-1].times == 0 and time.monotonic() < end:
        time.sleep(0.02)
    child.kill()
    child.communicate(timeout=30)
    same(list(cloud.state()), ["app"], "the name was recorded before the call")
    r = cloud.call("exec", "app", "true")
    ok(r.returncode == 125 and b"asb ended while it asked AWS" in r.stderr, "exec says what became of it", r.stderr)
    same((cloud.call("rm", "app").returncode, cloud.state()), (0, {}), "rm forgets it")
    aws.faults.append(Fault("RunMicrovm", times=9, cut=True))
    r = cloud.call("create", "app", "--image", IMAGE, env={"AWS_MAX_ATTEMPTS": "2"})
    ok(r.returncode == 1 and b"may have been started" in r.stderr and aws.faults[-1].times == 7, "an answer that is lost is told", r.stderr)
    same(list(cloud.state()), ["app"], "and its record stays")
    aws.faults.clear()
    cloud.call("rm", "app")


def files(cloud):
    cloud.call("create", "app", "--image", IMAGE)
    state = os.path.join(cloud.home.path, ".agent_sandbox")
    tokens = os.path.join(state, "aws/tokens")
    name, = os.listdir(tokens)
    same([stat.S_IMODE(os.stat(p).st_mode) for p in (state, tokens, os.path.join(tokens, name))], [0o700, 0o700, 0o600],
         "the kept token is private")
    cloud.call("rm", "app")
    same(os.listdir(tokens), [], "and goes with the VM")


with Cloud() as c:
    lifecycle(c)
    listing(c)
    names(c)
    places(c)
    garbage(c)
    refusals(c)
    failures(c)
    killed(c)
    files(c)
    same([x for x in c.aws.refused if x[4] not in (403,)], [], "the service model had nothing to object to")
done()
