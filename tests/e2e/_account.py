# SPDX-License-Identifier: Apache-2.0
"""What the tests against a stand-in for a whole AWS account (tests/aws/account.py, which checks each request) share."""
import os
import sys

from _asb import Home, TOP, need_asb, same, skip, skip_all

sys.path.insert(0, os.path.join(TOP, "tests/aws"))
if not os.path.exists(os.path.join(TOP, "tests/aws/model.py")):
    skip_all("tests/aws/model.py is missing")
from account import ACCOUNT, LOADER, REGION, Account  # noqa: E402,F401

need_asb()
if not LOADER:
    skip("requests to IAM, STS, EC2 and CloudWatch Logs against their models", "python3-botocore is missing (deps/apt-check.txt)")


class AccountHome:
    """`aws` the account, `home` a HOME with credentials for it, which is the folder that commands run in."""

    def __init__(self, **env):
        self.aws, self.home = Account(), Home()
        self.home.env = {k: v for k, v in self.home.env.items() if not k.startswith("AWS_")} | self.aws.env() | env

    def __enter__(self):
        return self

    def __exit__(self, *_):
        same(self.aws.refused, [], "every request was as its service wants it")
        self.aws.close()
        self.home.__exit__()

    def write(self, name, content):
        """A file of the HOME, of text or bytes; its folder is made."""
        path = os.path.join(self.home.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
