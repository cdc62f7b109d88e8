# SPDX-License-Identifier: Apache-2.0
"""What the tests of the aws backend share: the stand-in for AWS (tests/aws), in front of a real agentd, and a HOME that uses it."""
import os
import sys

from _asb import ASB, Home, TOP, done, need_asb, ok, one_line, same, skip, until  # noqa: F401

sys.path.insert(0, os.path.join(TOP, "tests/aws"))
sys.path.insert(0, os.path.join(TOP, "tests/guest"))

import _agentd  # noqa: E402
from proxy import proxy_to  # noqa: E402
from server import Aws, Fault  # noqa: E402,F401

need_asb()

IMAGE = "arn:aws:lambda:us-east-1:123456789012:microvm-image:guest"  # that the stand-in has


class Cloud:
    """One account: `aws` the service, `proxy` the class behind each VM's endpoint, `home` a HOME with credentials."""

    def __init__(self, env=None, guest=True, **more):
        """GUEST: with an agentd; or one that is there, with a `port`."""
        self.agent = guest if hasattr(guest, "port") else _agentd.Agentd(env) if guest else None
        self.proxy = proxy_to({8080: self.agent.port}) if guest else None
        self.aws = Aws(backend=self.proxy, **more)
        self.home = Home()
        keep = {k: v for k, v in self.home.env.items() if not k.startswith("AWS_")}
        self.home.env.clear()
        self.home.env.update(keep, **self.aws.env())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.aws.faults.clear()
        self.home.__exit__()
        self.aws.close()
        if self.agent:
            self.agent.stop()

    def call(self, *args, **kw):
        return self.home.call(*args, **kw)

    def state(self):
        path = os.path.join(self.home.path, ".agent_sandbox/state.json")
        if not os.path.exists(path):
            return {}
        import json
        with open(path, encoding="utf-8") as f:
            return json.load(f)["sandboxes"]

    def vm(self, name="app"):
        """What the service knows of the sandbox NAME; a test may change it."""
        return self.aws.vms[self.state()[name]["microvm_id"]]

    def living(self):
        return [v["microvmId"] for v in self.aws.vms.values() if v["state"] not in ("TERMINATING", "TERMINATED")]
