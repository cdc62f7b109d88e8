# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the Python agent that agentd is compatible with: the same routes with FastAPI and uvicorn, written for
`make bench` from a description of its behaviour. Usage: original.py (AGENTD_PORT, AGENTD_BIND from the environment)."""
import asyncio
import base64
import binascii
import os
from typing import Dict, List, Optional

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()


class Exec(BaseModel):
    command: str
    args: List[str] = []
    cwd: Optional[str] = None
    env: Optional[Dict[str, str]] = None
    timeout: Optional[float] = None


class Read(BaseModel):
    path: str


class Write(BaseModel):
    path: str
    content: str
    encoding: str = "base64"


def b64(data):
    return base64.b64encode(data).decode("ascii")


@app.get("/healthz")
async def healthz():
    return {"status": "ok", "version": "0.1.0"}


@app.post("/v1/exec")
async def run(body: Exec):
    try:
        child = await asyncio.create_subprocess_exec(
            body.command, *body.args, cwd=body.cwd, env={**os.environ, **(body.env or {})},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    except FileNotFoundError:
        raise HTTPException(400, f"command not found: {body.command}")
    try:
        out, err = await asyncio.wait_for(child.communicate(), body.timeout)
    except asyncio.TimeoutError:
        child.kill()
        await child.wait()
        raise HTTPException(504, "command timed out")
    return {"exit_code": child.returncode, "stdout": b64(out), "stderr": b64(err), "encoding": "base64"}


@app.post("/v1/fs/read")
async def read(body: Read):
    try:
        with open(body.path, "rb") as f:
            return {"content": b64(f.read()), "encoding": "base64"}
    except FileNotFoundError:
        raise HTTPException(404, f"no such file: {body.path}")
    except OSError as e:
        raise HTTPException(400, str(e))


@app.post("/v1/fs/write")
async def write(body: Write):
    try:
        data = base64.b64decode(body.content) if body.encoding == "base64" else body.content.encode()
    except (binascii.Error, ValueError):
        raise HTTPException(400, "invalid base64 content")
    try:
        os.makedirs(os.path.dirname(body.path) or ".", exist_ok=True)
        with open(body.path, "wb") as f:
            f.write(data)
    except OSError as e:
        raise HTTPException(400, str(e))
    return {"bytes_written": len(data)}


uvicorn.run(app, host=os.environ.get("AGENTD_BIND", "0.0.0.0"), port=int(os.environ.get("AGENTD_PORT", "8080")), log_level="info")
