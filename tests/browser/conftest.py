"""A real server and a real Chromium. Without the browser the tests skip and say so."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factories import make_attempt, make_rank, make_times, write_journal
from steptime.core.cause import Cause
from steptime.core.foreign import ForeignRun
from steptime.core.record import Attempt, Failure
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports

sync = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'"
)
uvicorn = pytest.importorskip(
    "uvicorn", reason="the guide is not installed: pip install '.[guide]'"
)

pytest.importorskip("fastapi", reason="the guide is not installed: pip install '.[guide]'")

from steptime.index.workspace import Workspace
from steptime.web.server import make_app

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WORK = {
    "fingerprint": "f",
    "unit": "images",
    "units_per_step": 32,
    "flops_per_step": 1_000_000,
    "optimizer": "sgd",
}
PROFILE: dict[str, Any] = {
    "phases": {
        "seconds": {"optimizer": 5e-5, "forward": 3.2e-4, "loss": 1e-5, "backward": 6e-4},
        "plain_seconds": 9.5e-4,
        "perturbation": 0.004,
        "how": "stamps",
        "steps": 500,
    },
    "operators": {
        "classes": {
            "convolution": 0.62,
            "normalisation": 0.2,
            "elementwise": 0.1,
            "framework overhead": 0.08,
        },
        "operators": [
            {
                "name": "aten::convolution_backward",
                "class": "convolution",
                "calls": 3,
                "share": 0.4,
            },
            {"name": "aten::mkldnn_convolution", "class": "convolution", "calls": 3, "share": 0.22},
            {"name": "<i>aten::batch_norm</i>", "class": "normalisation", "calls": 2, "share": 0.2},
        ],
        "plain_seconds": 9.5e-4,
        "perturbation": 0.11,
        "steps": 10,
        "unlisted_share": 0.0,
    },
    "memory": {
        "held_bytes": {
            "weights": 480_000,
            "optimizer state": 960_000,
            "gradients": 480_000,
            "activations": 5_600_000,
        },
        "note": "",
        "process_peak_bytes": 374_000_000,
    },
    "absent": {},
    "least_bytes": 400_000,
}
SPEED = {"fp32": 1.0, "bf16": 1.8, "int8": 3.0}


def make_rows(count: int = 400) -> list[dict[str, Any]]:
    rng = random.Random(0)
    return [make_row(number, rng) for number in range(count)]


def make_row(number: int, rng: random.Random) -> dict[str, Any]:
    precision, batch = rng.choice(sorted(SPEED)), rng.choice([1, 8, 64])
    speed = 1000 * rng.uniform(0.9, 1.1) * SPEED[precision]
    return {
        "id": f"{number:08}",
        "started": f"2026-01-01T00:00:{number % 60:02}",
        "source": "steptime",
        "device": "cpu",
        "model": rng.choice(["resnet50", "vgg16"]),
        "framework": rng.choice(["jax", "pytorch", "<b>bold</b>"]),
        "phase": rng.choice(["inference", "training"]),
        "precision": precision,
        "replica_batch": batch,
        "throughput": speed,
        "throughput_low": speed * 0.97,
        "throughput_high": speed * 1.03,
        "step_time": batch / speed,
        "mode": "eager",
        "status": "ok",
        "plausible": "yes",
    }


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return make_rows()


@contextlib.contextmanager
def serve_workspace(workspace: Workspace, running: Callable[[], list[Any]] = list) -> Iterator[str]:
    server = uvicorn.Server(
        uvicorn.Config(make_app(workspace, campaigns=running), port=0, log_level="warning")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def address(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    workspace = Workspace(FolderStore(tmp_path_factory.mktemp("store")))
    workspace.index.add(rows)
    with serve_workspace(workspace) as found:
        yield found


class FilledStore:
    """A store with journals: a history that slows down by 30 %, and several frameworks.

    Also a failure, certificates, a machine, and an imported result that cannot be true."""

    def __init__(self, path: Path) -> None:
        self.store = FolderStore(path)
        self.ids: dict[str, str] = {}
        self.seed, self.steps = 0, 200
        for number, step_ns in enumerate((1.0e6, 1.0e6, 1.0e6, 1.3e6, 1.3e6, 1.3e6)):
            self.record(f"pytorch {number}", step_ns, framework="pytorch")
        for framework, step_ns in (("jax", 0.7e6), ("onnxruntime", 0.5e6)):
            self.record(framework, step_ns, framework=framework)
        for framework, step_ns in (("pytorch", 0.2e6), ("jax", 0.4e6)):
            self.record(f"{framework} small", step_ns, framework=framework, batch_size=1)
        self.record("lonely", 1e6, framework="pytorch", batch_size=64)
        for framework in ("pytorch", "jax"):
            self.certificate(framework)
        self.failure()
        self.machine()
        self.foreign()

    def attempt(self, times: Any, **changes: Any) -> Attempt:
        """Of the machine whose peaks are known."""
        case = {"phase": "inference", "mode": "eager", **changes}
        made = make_attempt(times, cut=20, **case)
        version = {made.case.framework: "2.13.0"}
        return replace(
            made,
            machine={**made.machine, "fingerprint": "abc123", "hostname": "node"},
            software=version,
            program=f"code of {made.case.framework}",
        )

    def record(self, name: str, step_ns: float, **case: Any) -> None:
        self.seed += 1
        for process in range(6):
            times = make_times(
                100 * self.seed + process, centre_ns=step_ns, noise=0.01, steps=self.steps
            )
            made = self.attempt(times, process=process, session=f"session {self.seed}", **case)
            identifier = write_journal(self.store, made)
            self.ids.setdefault(name, identifier)

    def certificate(self, framework: str) -> None:
        item = {
            "item": "outputs",
            "where": "outputs[0]",
            "share": 0.5,
            "passed": True,
            "error": 1.0,
            "bound": 2.0,
            "weak": False,
        }
        found = {"version": "2.13.0", "covers": "training", "items": [item]}
        made = self.attempt([1] * 40, blocks=1, framework=framework)
        write_journal(
            self.store,
            replace(made, task="certify", measurement=None, findings={"certificate": found}),
        )

    def failure(self) -> None:
        made = self.attempt([1] * 40, blocks=1, framework="openvino", session="failed")
        failure = Failure(
            cause=Cause.UNSUPPORTED,
            reason="OpenVINO does not train.",
            output="<script>alert(1)</script>",
        )
        self.ids["failed"] = write_journal(
            self.store, replace(made, measurement=None, failure=failure)
        )

    def machine(self) -> None:
        peak = {
            "flops_per_second": 4e9,
            "median_flops_per_second": 3e9,
            "shape": [512, 512, 512],
            "n": 9,
        }
        found = {"machine": {"fingerprint": "abc123", "cpu": "A processor"}, "software": {}}
        copy = {"bytes_per_second": 2e9, "median_bytes_per_second": 1.5e9, "shape": [1024], "n": 9}
        found["peaks"] = {"cpu": {"framework": "pytorch", "peaks": {"fp32": peak, "copy": copy}}}
        path = self.store.path / "machines" / "abc123.json"
        path.parent.mkdir()
        path.write_text(json.dumps(found))

    def foreign(self) -> None:
        common = {
            "source": "lambda",
            "original": "ab" * 32,
            "file": "lambda.csv",
            "started": "2026-01-01T00:00:00",
        }
        dimensions = {"model": "bert-base", "framework": "tensorflow", "devices": 8}
        run = ForeignRun(
            **common,
            location="row 7",
            dimensions=dimensions,
            metrics={"throughput": 1e6},
            quarantine="19.6× on 8 GPUs",
        )
        self.ids["foreign"] = run.id
        with Imports(self.store.path) as imports:
            imports.keep("ab" * 32, b"x", [run])


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory,
) -> FilledStore:
    return FilledStore(tmp_path_factory.mktemp("filled"))


@pytest.fixture(scope="module")
def filled_address(filled: FilledStore) -> Iterator[str]:
    workspace = Workspace(filled.store)
    workspace.refresh()
    with serve_workspace(workspace) as found:
        yield found


MONITOR = {
    "first_ns": 0,
    "absent": ["disk_read_bytes"],
    "cost": {"cpu_seconds": 0.2, "share": 0.004},
    "columns": {
        "seconds": [0.0, 1.0, 2.0, 3.0],
        "cpu_seconds": [0.0, 1.0, 2.5, 4.5],
        "memory_bytes": [100 << 20, 300 << 20, 312 << 20, 312 << 20],
        "gpu0.utilisation": [0.0, 0.5, 0.9, 0.9],
    },
}


class ProfiledStore(FilledStore):
    """A profiled run on a board that reports its power, a plain run, and one of two ranks."""

    def __init__(self, path: Path) -> None:
        self.store = FolderStore(path)
        self.ids, self.seed, self.steps = {}, 0, 50
        board = {"sm_clock_mhz": 1980.0, "power_w": 512.5, "temperature_c": 55.0}
        self.record(
            "profiled",
            1.0e6,
            phase="training",
            gpu=board,
            network=WORK,
            findings={"monitor": MONITOR},
        )
        self.record("plain", 1.0e6, phase="training", batch_size=64)
        # A step of the second rank takes a fifth longer.
        ranks = (
            make_rank(0, [1_000_000] * 50, cut=20),
            make_rank(1, [1_200_000] * 50, cut=20),
        )
        shared = {"devices": 2, "exchange": "allreduce", "ranks": ranks}
        self.record("ranks", 1.2e6, phase="training", **shared)
        made = self.attempt([1] * 40, blocks=1, phase="training", network=WORK)
        found = {**PROFILE, "operators": {**PROFILE["operators"], "trace": self.trace()}}
        write_journal(
            self.store, replace(made, task="profile", measurement=None, findings={"profile": found})
        )
        self.machine()

    def trace(self) -> dict[str, Any]:
        """Ten steps of two operators, the second inside the first."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}
        ]
        for step in range(10):
            for name, start, length in (
                ("step", 0, 900),
                ("aten::conv2d", 50, 600),
                ("aten::mkldnn", 100, 500),
            ):
                events.append(
                    {
                        "ph": "X",
                        "name": name,
                        "ts": 1000 * step + start,
                        "dur": length,
                        "pid": 1,
                        "tid": 1,
                    }
                )
        packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
        return {"sha256": Blobs(self.store.path).put(packed), "bytes": len(packed), "events": 30}


@pytest.fixture(scope="module")
def profiled(
    tmp_path_factory: pytest.TempPathFactory,
) -> ProfiledStore:
    return ProfiledStore(tmp_path_factory.mktemp("profiled"))


@pytest.fixture(scope="module")
def profiled_address(profiled: ProfiledStore) -> Iterator[str]:
    workspace = Workspace(profiled.store)
    workspace.refresh()
    with serve_workspace(workspace) as found:
        yield found


@pytest.fixture
def open_profiled(chromium: Any, profiled_address: str) -> Iterator[Callable[..., Any]]:
    with open_views(chromium, profiled_address) as open_view:
        yield open_view


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@contextlib.contextmanager
def open_views(chromium: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens views. In the end, none may have logged a problem or contacted another host."""
    contexts, troubles = [], []

    def open_view(path: str = "/", **settings: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console",
            lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda problem: troubles.append(str(problem)))
        page.on(
            "request",
            lambda sent: troubles.append(sent.url) if not _own(sent.url, address) else None,
        )
        page.goto(address + path)
        return page

    yield open_view
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def serve() -> Callable[..., contextlib.AbstractContextManager[str]]:
    return serve_workspace


@pytest.fixture
def opener() -> Callable[..., contextlib.AbstractContextManager[Callable[..., Any]]]:
    return open_views


@pytest.fixture
def open_page(chromium: Any, address: str) -> Iterator[Callable[..., Any]]:
    with open_views(chromium, address) as open_view:
        yield open_view


@pytest.fixture
def open_filled(chromium: Any, filled_address: str) -> Iterator[Callable[..., Any]]:
    """The same with real journals behind the pages."""
    with open_views(chromium, filled_address) as open_view:
        yield open_view


@pytest.fixture
def violations() -> Callable[[Any], list[Any]]:
    """What axe-core finds in a page."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
    )
    return lambda page: axe.Axe().run(page).response["violations"]


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))


IMAGES = Path(__file__).parents[2] / "docs" / "images"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--screenshots", action="store_true", help="write the pictures of the docs to docs/images"
    )


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Callable[[Any, str], Path]:
    """The docs' picture of a view. --screenshots writes it, in 256 colours to stay small."""

    def take(page: Any, name: str) -> Path:
        path = IMAGES / f"{name}.png"
        if request.config.getoption("--screenshots", default=False):
            from PIL import Image

            path.parent.mkdir(exist_ok=True)
            page.screenshot(path=path)
            Image.open(path).convert("RGB").quantize(
                256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
            ).save(path, optimize=True)
        return path

    return take
