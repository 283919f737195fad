"""A real server and a real Chromium. Whoever lacks the browser is told so when the tests skip."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'")
uvicorn = pytest.importorskip("uvicorn", reason="the guide is not installed: pip install '.[guide]'")

QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SPEED = {"fp32": 1.0, "bf16": 1.8, "int8": 3.0}


def made_rows(count: int = 400) -> list[dict[str, Any]]:
    dice = random.Random(0)
    return [made_row(number, dice) for number in range(count)]


def made_row(number: int, dice: random.Random) -> dict[str, Any]:
    precision, batch = dice.choice(sorted(SPEED)), dice.choice([1, 8, 64])
    speed = 1000 * dice.uniform(0.9, 1.1) * SPEED[precision]
    return {
        "id": f"{number:08}", "started": f"2026-01-01T00:00:{number % 60:02}", "source": "steptime", "device": "cpu",
        "model": dice.choice(["resnet50", "vgg16"]), "framework": dice.choice(["jax", "pytorch", "<b>bold</b>"]),
        "phase": dice.choice(["inference", "training"]), "precision": precision, "replica_batch": batch,
        "throughput": speed, "throughput_low": speed * 0.97, "throughput_high": speed * 1.03,
        "step_time": batch / speed, "mode": "eager", "status": "ok", "plausible": "yes",
    }  # fmt: skip


@pytest.fixture(scope="session")
def rows() -> list[dict[str, Any]]:
    return made_rows()


@pytest.fixture(scope="session")
def address(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from steptime.guide.server import app
    from steptime.guide.source import Source
    from steptime.store.folder import FolderStore

    source = Source(FolderStore(tmp_path_factory.mktemp("store")))
    source.index.add(rows)
    server = uvicorn.Server(uvicorn.Config(app(source), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens a view; at the end nothing may have gone wrong in it, and nothing may have been asked of another host."""
    contexts, troubles = [], []

    def open_view(path: str = "/", **settings: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda problem: troubles.append(str(problem)))
        page.on("request", lambda sent: troubles.append(sent.url) if not _own(sent.url, address) else None)
        page.goto(address + path)
        return page

    yield open_view
    for context in contexts:
        context.close()
    assert troubles == []


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))
