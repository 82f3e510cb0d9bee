"""The usual alternative: the measured part of the contract on FastAPI, SQLite and InfluxDB 1.

The bench starts it as `python3 peer.py <port> <port of InfluxDB> <agents> <file of accounts>`, with the password of all accounts in
`PEER_PASSWORD`. It is tuned as its documentation recommends: uvloop and httptools, no access log, batched writes, and kept connections to
InfluxDB. It does less than our service: it has no permissions, it acknowledges a report before it stores it, and it keeps the messages of
jobs in memory only.
"""

import asyncio
import hashlib
import json
import logging
import os
import re
import secrets
import sqlite3
import sys
import time
from collections import defaultdict, deque
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Optional

import jwt
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from fastapi.security import OAuth2PasswordBearer, OAuth2PasswordRequestForm
from influxdb import InfluxDBClient
from influxdb.line_protocol import quote_ident
from pydantic import BaseModel

PORT, INFLUX_PORT, AGENTS = [int(argument) for argument in sys.argv[1:4]]
TOKEN_LIFETIME_S = 86_400
FLUSH_INTERVAL_S = 1
MAX_WAITING_LINES = 200_000
MAX_PENDING_MESSAGES = 1_000
QUERY_THREADS = 40

app = FastAPI()
bearer = OAuth2PasswordBearer("/api/v1/token/")
key = secrets.token_bytes(32)
# JSON, because the client parses it in less time than its default, MessagePack.
json_only = {"Accept": "application/json"}
influx = InfluxDBClient("127.0.0.1", INFLUX_PORT, database="controller", pool_size=QUERY_THREADS, headers=json_only)
log = logging.getLogger("uvicorn.error")

# The event loop reads SQLite directly: a look-up by key takes less time than a change of threads.
accounts = sqlite3.connect(sys.argv[4], isolation_level=None)
accounts.execute("PRAGMA journal_mode = WAL")


# Accounts and tokens


class TokenData(BaseModel):
    username: Optional[str]
    roles: str
    scopes: list[str] = []


def hash_password(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


def create_accounts(password: str) -> None:
    salt = secrets.token_bytes(16)
    stored = salt + hash_password(password, salt)
    rows = [("user", "bench@example.com", stored, "user"), *(("agent", f"peer-{i}", stored, "") for i in range(AGENTS))]
    accounts.execute("CREATE TABLE accounts (kind TEXT, name TEXT, password BLOB, roles TEXT, PRIMARY KEY (kind, name))")
    accounts.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?)", rows)


@app.post("/api/v1/token/")
async def log_in(login_type: str, form: OAuth2PasswordRequestForm = Depends()):
    query = "SELECT password FROM accounts WHERE kind = ? AND name = ?"
    row = accounts.execute(query, (login_type, form.username)).fetchone()
    stored = row[0] if row else bytes(80)
    hashed = await asyncio.to_thread(hash_password, form.password, stored[:16])
    if not secrets.compare_digest(stored[16:], hashed):
        raise HTTPException(401, "Wrong name or password")
    claims = {"sub": form.username, "login_type": login_type, "exp": int(time.time()) + TOKEN_LIFETIME_S}
    return {"access_token": jwt.encode(claims, key), "token_type": "bearer", "expires_in": TOKEN_LIFETIME_S}


async def caller(token: str = Depends(bearer)) -> dict[str, Any]:
    """Returns the claims of the token."""
    try:
        return jwt.decode(token, key, ["HS256"])
    except jwt.InvalidTokenError:
        raise HTTPException(401, "Invalid token")


@app.get("/api/v1/users/me")
async def me(claims: dict = Depends(caller)) -> TokenData:
    query = "SELECT name, roles FROM accounts WHERE kind = 'user' AND name = ?"
    row = accounts.execute(query, (claims["sub"],)).fetchone()
    if row is None:
        raise HTTPException(401, "The account does not exist")
    return TokenData(username=row[0], roles=row[1], scopes=["agents:read", "telemetry:read"])


# Telemetry


class Sample(BaseModel):
    ts: Optional[int]  # milliseconds
    payload: dict[str, float]


class Report(BaseModel):
    ts: Optional[int]
    payload: dict[str, float] = {}
    samples: list[Sample] = []


waiting_lines: deque[str] = deque()


@lru_cache(maxsize=10_000)
def escape(name: str) -> str:
    return re.sub(r"([ ,=\\])", r"\\\1", name)


# The line protocol, written here because `write_points` takes seven times as long.
def to_line(ap_id: str, sample: Sample) -> str:
    fields = ",".join([f"{escape(name)}={value}" for name, value in sample.payload.items()])
    return f"{escape(f'agent/{ap_id}/data')} {fields} {sample.ts or time.time_ns() // 1_000_000}"


@app.post("/api/v1/agent_update/update")
async def update(report: Report, claims: dict = Depends(caller)):
    samples = report.samples or [report]
    if len(waiting_lines) + len(samples) > MAX_WAITING_LINES:
        raise HTTPException(503, "InfluxDB does not keep up")
    waiting_lines.extend([to_line(claims["sub"], sample) for sample in samples if sample.payload])
    accepted = sum(len(sample.payload) for sample in samples)
    return {"status": "success", "detail": "Accepted", "accepted": accepted, "rejected": []}


async def write_waiting() -> None:
    lines = list(waiting_lines)
    waiting_lines.clear()
    try:
        if lines:
            params = {"db": "controller", "precision": "ms"}
            await asyncio.to_thread(influx.write, lines, params=params, protocol="line")
    except Exception:
        log.exception("write to InfluxDB failed")
        waiting_lines.extendleft(reversed(lines))


async def write_batches() -> None:
    while True:
        await asyncio.sleep(FLUSH_INTERVAL_S)
        await write_waiting()


@app.get("/api/v1/metrics/agent_multi_metric_data")
def chart(agent: str, metrics: list[str] = Query(), window: str = "5", _: dict = Depends(caller)):
    """Runs in a thread, because the client of InfluxDB blocks."""
    names = [name for part in metrics for name in part.split(",")]
    match = re.fullmatch(r"(\d+)([mhd]?)", window)
    if match is None:
        raise HTTPException(422, "Invalid window")
    minutes = int(match[1]) * {"": 1, "m": 1, "h": 60, "d": 1_440}[match[2]]
    fields = ", ".join(quote_ident(name) for name in names)
    source = quote_ident(f"agent/{agent}/data")
    result = influx.query(f"SELECT {fields} FROM {source} WHERE time > now() - {minutes}m AND time <= now()")
    rows = next((series["values"] for series in result.raw.get("series", [])), [])
    series = [
        {"metric": name, "points": [{"ts": row[0], "value": row[i]} for row in rows if row[i] is not None]}
        for i, name in enumerate(names, 1)
    ]
    # A response of its own: FastAPI would visit each of the points again.
    return JSONResponse({"agent_id": agent, "window_minutes": minutes, "series": series})


# Jobs


class Job:
    def __init__(self) -> None:
        self.seq = 0
        self.sockets: set[WebSocket] = set()
        self.pending: deque[str] = deque(maxlen=MAX_PENDING_MESSAGES)


jobs: defaultdict[str, Job] = defaultdict(Job)


@app.post("/api/v1/callback/agent_data")
async def callback(job_number: str, data: list[Any], _: dict = Depends(caller)):
    job = jobs[job_number]
    job.seq += 1
    ts = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    envelope = {"job_number": job_number, "seq": job.seq, "type": "agent_data", "ts": ts, "final": False, "data": data}
    message = json.dumps(envelope, separators=(",", ":"))
    response = {"status": "success", "job_number": job_number, "seq": job.seq, "delivered": len(job.sockets)}
    if not job.sockets:
        job.pending.append(message)
        return {**response, "queued": True, "detail": "Stored until a socket connects"}
    for socket in list(job.sockets):
        await socket.send_text(message)
    return {**response, "queued": False, "detail": "Sent"}


@app.websocket("/api/v1/ws/{job_number}")
async def stream(socket: WebSocket, job_number: str) -> None:
    try:
        await caller(socket.headers.get("Authorization", "").removeprefix("Bearer "))
    except HTTPException:
        return await socket.close(4401)
    await socket.accept()
    job = jobs[job_number]
    while job.pending:
        await socket.send_text(job.pending.popleft())
    job.sockets.add(socket)
    try:
        while True:
            await socket.receive_text()
    except WebSocketDisconnect:
        job.sockets.discard(socket)
        if not job.sockets:
            jobs.pop(job_number, None)


@app.get("/healthz")
async def health():
    return {"status": "ok"}


@app.on_event("startup")
async def start() -> None:
    create_accounts(os.environ["PEER_PASSWORD"])
    influx.create_database("controller")
    app.state.writer = asyncio.create_task(write_batches())


@app.on_event("shutdown")
async def stop() -> None:
    app.state.writer.cancel()
    await write_waiting()


if __name__ == "__main__":
    # One worker: jobs are in the memory of their process. workerd runs our Worker in one thread, too.
    options = {"loop": "uvloop", "http": "httptools", "ws": "websockets", "access_log": False, "log_level": "warning"}
    uvicorn.run(app, host="127.0.0.1", port=PORT, **options)
