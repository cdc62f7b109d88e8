#!/usr/bin/env python3
"""A "run this code" tool for an agent: `asb exec --json` gives one document that tells the command's own failure
("source": "guest") from a failure of the sandbox ("asb").

    echo 'print(6 * 7)' | examples/agent_tool.py
"""
import base64
import json
import subprocess
import sys


def run_python(code: str, timeout: int = 30) -> dict:
    p = subprocess.run(
        ["asb", "run", "--json", "--quiet", "--timeout", str(timeout), "--", "python3", "-"],
        input=code.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    doc = json.loads(p.stdout)
    for name in ("stdout", "stderr"):
        if doc.get("encoding") == "base64":
            doc[name] = base64.b64decode(doc[name]).decode("utf-8", "replace")
    return doc


if __name__ == "__main__":
    result = run_python(sys.stdin.read())
    if result["source"] == "asb":
        sys.exit(f"the sandbox failed: {result['error']['message']}")
    print(json.dumps({k: result[k] for k in ("exit_code", "stdout", "stderr", "duration_ms")}, indent=2))
