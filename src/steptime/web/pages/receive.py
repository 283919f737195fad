"""Accepts a journal that another machine wrote: checked, and stored once under its own id."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt, Record
from steptime.index.rows import make_row
from steptime.store import reader
from steptime.store.atomic import create_file, explain_write_errors
from steptime.store.files import read_bytes
from steptime.store.folder import FolderStore
from steptime.store.postgres import PostgresStore
from steptime.store.push import push
from steptime.store.readable import ReadableStore
from steptime.web.context import PageContext

PATH = "/api/v1/runs"
TITLE = "Send a run"
ORDER = None

MOST_BYTES = 32 * 2**20
TAKEN = "Another journal has the id {} already."
BODY = {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}


def add(server: FastAPI, context: PageContext) -> None:
    @server.post(PATH, status_code=201, openapi_extra={"requestBody": BODY})
    async def receive_run(request: Request) -> Response:
        """Accepts a journal of another machine; needs the token."""
        if refused := context.access.write_refusal(request):
            raise HTTPException(*refused)
        text = await _read_body(request)
        # Parsing and writing block, and other requests must go on.
        attempt = await run_in_threadpool(read_journal, text)
        is_new = await run_in_threadpool(keep_journal, context.workspace.store, attempt, text)
        context.workspace.expect_changes()
        status = 201 if is_new else 200
        return JSONResponse({"id": attempt.id, "new": is_new}, status_code=status)


async def _read_body(request: Request) -> bytes:
    """Stops reading as soon as it is too much."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"The journal is larger than {MOST_BYTES:,} bytes.")
    return bytes(body)


def read_journal(text: bytes) -> Attempt:
    """The attempt in this journal. Refuses one that is incomplete or gives no result."""
    problems: list[str] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        path.write_bytes(text)
        attempt = reader.read(path, problems)
    if attempt is None or problems or not attempt.ended:
        why = problems[0].replace(str(path), "it") if problems else "it has no end"
        raise SteptimeError(f"This journal is incomplete or not valid: {why}")
    _check_id(attempt.id)
    try:
        make_row(Record(attempts=(attempt,)))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise SteptimeError(f"No result follows from this journal: {problem!r}.") from None
    return attempt


def _check_id(attempt_id: Any) -> None:
    """The id becomes a file name, so it must be a UUID in its one spelling."""
    try:
        uuid = UUID(attempt_id)
        is_valid = str(uuid) == attempt_id and uuid.version == 7
    except (ValueError, TypeError, AttributeError):
        is_valid = False
    if not is_valid:
        raise SteptimeError(
            f"An attempt's id is a UUID of version 7, in lower case; found {attempt_id!r}."
        )


def keep_journal(store: ReadableStore, attempt: Attempt, text: bytes) -> bool:
    """Stores all of it or nothing. False if the store has it already."""
    if isinstance(store, FolderStore):
        return _write_journal(store, attempt.id, text)
    assert isinstance(store, PostgresStore)
    with TemporaryDirectory() as folder:
        _write_journal(FolderStore(folder), attempt.id, text)
        is_new = push(FolderStore(folder), store.address).runs > 0
    if not is_new and store.attempts_at({attempt.id: "runs"}) != [attempt]:
        raise HTTPException(409, TAKEN.format(attempt.id))
    return is_new


def _write_journal(store: FolderStore, attempt_id: str, text: bytes) -> bool:
    # Without this check a store that is gone would come back with this journal alone.
    store.check_exists()
    try:
        path = store.journal(attempt_id)
    except (ValueError, OverflowError, OSError) as problem:
        raise SteptimeError(f"The id {attempt_id} names no day: {problem}.") from None
    with explain_write_errors(f"The store {store.path}", "Nothing was kept: send it again."):
        try:
            create_file(path, text)
        except FileExistsError:
            if read_bytes(path) != text:
                raise HTTPException(409, TAKEN.format(attempt_id)) from None
            return False
    return True
