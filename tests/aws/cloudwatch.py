# SPDX-License-Identifier: Apache-2.0
"""CloudWatch Logs of the stand-ins: two operations that read, checked against botocore's model where it is installed."""
import json

from model import Bad

try:
    import botocore.loaders
    LOADER = botocore.loaders.Loader()
    LOGS = LOADER.load_service_model("logs", "service-2")
except ImportError:
    LOADER = LOGS = None  # then requests, also to IAM, STS and EC2 (account.py), are not checked against models; the suites tell

PAGE = 3  # events on a page, however many are asked for


def check(op, v):
    if not LOGS:
        return
    s = LOGS["shapes"]
    members = s[LOGS["operations"][op]["input"]["shape"]]["members"]
    for name, value in v.items():
        kind = s[members[name]["shape"]]["type"] if name in members else None
        if not isinstance(value, {"string": str, "long": int, "integer": int, "boolean": bool}.get(kind, ())):
            raise Bad(400, "ValidationError", f"{name}={value!r} of {op}")


class CloudWatch:
    """`log` has (group, stream, time in ms, message), the oldest first."""
    log = ()

    def logs(self, target, body):
        """(operation, members, answer)"""
        op, v = target.partition("Logs_20140328.")[2], json.loads(body)
        if op not in ("FilterLogEvents", "GetLogEvents"):
            raise Bad(400, "ValidationError", f"logs: {target}")
        check(op, v)
        here = [x for x in self.log if x[0] == v["logGroupName"]]
        if not here:
            raise Bad(400, "ResourceNotFoundException", "The specified log group does not exist.")
        if "logStreamName" in v and not any(s == v["logStreamName"] for _, s, *_ in here):
            raise Bad(400, "ResourceNotFoundException", "The specified log stream does not exist.")
        found = [{"logStreamName": s, "timestamp": t, "message": m, "ingestionTime": t, "eventId": "e"} for g, s, t, m in here
                 if t >= v.get("startTime", 0) and (s == v["logStreamName"] if "logStreamName" in v
                                                    else s.startswith(v.get("logStreamNamePrefix", "")))]
        if op == "GetLogEvents":
            return op, v, self.page_of(found, v)
        at = int(v.get("nextToken", "f/0")[2:])
        part, to = found[at:at + PAGE], min(at + PAGE, len(found))
        return op, v, {"events": part, "nextToken": f"f/{to}"} if to < len(found) else {"events": part}

    @staticmethod
    def page_of(found, v):
        """A token that begins with "f" is for what comes after a place, one with "b" for what was before."""
        size, token = min(PAGE, v.get("limit", PAGE)), v.get("nextToken")
        if token and token[0] == "f" and not v.get("startFromHead"):
            raise Bad(400, "InvalidParameterException", "a forward token wants startFromHead")
        if v.get("startFromHead"):
            start = int(token[2:]) if token else 0
            end = min(start + size, len(found))
        else:
            end = int(token[2:]) if token else len(found)
            start = max(end - size, 0)
        events = [{k: x for k, x in e.items() if k in ("timestamp", "message", "ingestionTime")} for e in found[start:end]]
        return {"events": events, "nextForwardToken": f"f/{end}", "nextBackwardToken": f"b/{start}"}
