"""Takes in a journal that another machine wrote, with a token: checked whole, kept under its own id, once."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt, Record
from steptime.index.rows import row
from steptime.store import reader
from steptime.store.atomic import create_file, explain_write_errors
from steptime.store.folder import FolderStore
from steptime.store.postgres import PostgresStore
from steptime.store.push import push
from steptime.store.readable import ReadableStore
from steptime.web.access import Access
from steptime.web.context import Desk

MOST_BYTES = 32 * 2**20
TAKEN = "Another journal has the id {} already."
BODY = {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}


def add(server: FastAPI, desk: Desk, access: Access) -> None:
    @server.post("/api/v1/runs", status_code=201, openapi_extra={"requestBody": BODY})
    async def take_in(request: Request) -> Response:
        """Takes in a journal of another machine; needs the token."""
        if refused := access.may_write(request):
            raise HTTPException(*refused)
        text = await _body(request)
        attempt = await run_in_threadpool(checked, text)
        is_new = await run_in_threadpool(kept, desk.source.store, attempt, text)
        desk.source.expect_news()
        return JSONResponse({"id": attempt.id, "new": is_new}, status_code=201 if is_new else 200)


async def _body(request: Request) -> bytes:
    """Stops to listen as soon as it is too much."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            raise HTTPException(413, f"A journal of more than {MOST_BYTES:,} bytes is not taken.")
    return bytes(found)


def checked(text: bytes) -> Attempt:
    """What the store's reader makes of it, if nothing is missing and a result follows from it."""
    problems: list[str] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        path.write_bytes(text)
        attempt = _attempt(path, problems)
    if attempt is None or problems or not attempt.ended:
        why = problems[0].replace(str(path), "it") if problems else "it has no end"
        raise SteptimeError(f"This is not a whole journal: {why}")
    _check_id(attempt.id)
    _check_text(text)
    try:
        row(Record(attempts=(attempt,)))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise SteptimeError(f"No result follows from this journal: {problem!r}.") from None
    return attempt


def _attempt(path: Path, problems: list[str]) -> Attempt | None:
    try:
        return reader.read(path, problems)
    except (RecursionError, UnicodeError) as problem:
        raise SteptimeError(f"This is not a journal: {type(problem).__name__}.") from None


def _check_text(text: bytes) -> None:
    """Halves of characters can be written in JSON and nowhere else: no page and no index could hold them."""
    try:
        for line in filter(None, text.split(b"\n")):
            json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        raise SteptimeError(f"This journal holds what is no text: {problem.reason}.") from None


def _check_id(identifier: Any) -> None:
    """It becomes a file's name, so it must be an id in its one spelling."""
    try:
        found = UUID(identifier)
        fits = str(found) == identifier and found.version == 7
    except (ValueError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise SteptimeError(
            f"An attempt's id is a UUID of version 7, in small letters; found {identifier!r}."
        )


def kept(store: ReadableStore, attempt: Attempt, text: bytes) -> bool:
    """Appears whole or not at all. False: it was here already."""
    if isinstance(store, FolderStore):
        return _written(store, attempt.id, text)
    assert isinstance(store, PostgresStore)
    with TemporaryDirectory() as folder:
        _written(FolderStore(folder), attempt.id, text)
        is_new = push(FolderStore(folder), store.address).runs > 0
    if not is_new and store.attempts_at({attempt.id: "runs"}) != [attempt]:
        raise HTTPException(409, TAKEN.format(attempt.id))
    return is_new


def _written(store: FolderStore, identifier: str, text: bytes) -> bool:
    store.check_exists()  # else this journal would make another
    try:
        path = store.journal(identifier)
    except (ValueError, OverflowError, OSError) as problem:
        raise SteptimeError(f"The id {identifier} names no day: {problem}.") from None
    with explain_write_errors(f"The store {store.path}", "Nothing was kept: send it again."):
        try:
            create_file(path, text)
        except FileExistsError:
            if path.read_bytes() != text:
                raise HTTPException(409, TAKEN.format(identifier)) from None
            return False
    return True
