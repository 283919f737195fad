"""`steptime data`: which sets are here, and downloads as a user meets them."""

from __future__ import annotations

import io
import json
import os
import re
import signal
from contextlib import redirect_stderr
from pathlib import Path

import pytest

pytest.importorskip("pooch", reason="downloads are not installed: pip install '.[data]'")

from command_line import Command, Process, Snapshot, Terminal
from file_server import serve_files
from steptime.cli.render.data import download_bar
from steptime.data.fetch import fetch
from steptime.data.sets import mnist


@pytest.mark.parametrize("columns", [80, 120])
def test_data_list_says_which_sets_are_here(
    columns: int, steptime: Command, tiny_mnist: Path, snapshot: Snapshot
) -> None:
    done = steptime("data", "list", columns=columns)
    assert done.returncode == 0, done.stderr
    head, table = done.stdout.split("subfolders.\n")
    assert str(tiny_mnist) in head
    # Without the line of the folder, whose length differs from run to run.
    snapshot(f"data-list-{columns}", table)


def test_data_list_names_a_damaged_file(steptime: Command, tiny_mnist: Path) -> None:
    (tiny_mnist / "MNIST" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"other")
    shown = steptime("data", "list").stdout
    assert "t10k-labels-idx1-ubyte.gz is not MNIST's" in shown and "unusable" in shown
    document = json.loads(steptime("data", "list", "--json").stdout)
    states = {entry["name"]: entry["state"] for entry in document["sets"]}
    assert states == {"cifar10": "missing", "mnist": "unusable", "wikitext2": "missing"}
    assert document["folder"] == str(tiny_mnist)


def test_data_fetch_says_what_it_fetched(
    steptime: Command, tiny_mnist: Path, tmp_path: Path, snapshot: Snapshot
) -> None:
    files = {path.name: path.read_bytes() for path in (tiny_mnist / "MNIST").iterdir()}
    with serve_files(files) as server:
        arguments = ("data", "fetch", "mnist", "--data", "new", "--from", server.address)
        texts = [steptime(*arguments).stdout for _ in range(2)]
        document = json.loads(steptime(*arguments, "--json").stdout)
    # How well gzip packs differs from machine to machine.
    snapshot("data-fetch", re.sub(r"\(\d+ B\)", "(123 B)", "".join(texts)))
    assert document == {"folder": str(tmp_path / "new"), "fetched": {"mnist": []}}
    assert len(server.requested) == len(files)


def test_data_fetch_shows_a_bar_on_a_terminal(
    tiny_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    files = {path.name: path.read_bytes() for path in (tiny_mnist / "MNIST").iterdir()}
    with serve_files(files) as server, redirect_stderr(Terminal()) as terminal:
        fetch(mnist, tmp_path / "new", server.address, download_bar)
    assert all(name in terminal.getvalue() for name in files)
    with redirect_stderr(io.StringIO()):
        assert download_bar("file") is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("minst",), "No data set 'minst'. Did you mean 'mnist'?"),
        (("mnist", "--from", "files"), "--from is an address, as https://HOST/FOLDER; found"),
    ],
)
def test_data_fetch_explains_wrong_arguments(
    arguments: tuple[str, ...], sentence: str, steptime: Command, tmp_path: Path
) -> None:
    done = steptime("data", "fetch", *arguments)
    assert done.returncode == 1 and sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_data_fetch_interrupted_leaves_no_half_file(
    steptime_process: Process, tmp_path: Path
) -> None:
    name = "train-images-idx3-ubyte.gz"
    with serve_files({name: bytes(1000)}) as server:
        server.faults[name] = "stalls"
        flags = ("--data", "sets", "--from", server.address)
        with steptime_process("data", "fetch", "mnist", *flags) as process:
            assert server.stalled.wait(60)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "complete files are kept" in told
    assert os.listdir(tmp_path / "sets") == []
