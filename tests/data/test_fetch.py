"""Downloads from a real server on this machine: what arrives, what does not, and what is left."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pooch", reason="downloads are not installed: pip install '.[data]'")

from file_server import FileServer, serve_files
from steptime.core.errors import NotInstalled, SteptimeError
from steptime.data import fetch as fetching
from steptime.data.fetch import NotFetched, fetch
from steptime.data.sets import WrongFile, check_files, cifar10, mnist

LABELS = "t10k-labels-idx1-ubyte.gz"


def show_nothing(_: str) -> None:
    return None


@pytest.fixture
def server(tiny_mnist: Path) -> Iterator[FileServer]:
    files = {path.name: path.read_bytes() for path in (tiny_mnist / "MNIST").iterdir()}
    with serve_files(files) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fetched"


def files_below(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_fetch_gets_all_files_as_they_are(server: FileServer, folder: Path) -> None:
    paths = fetch(mnist, folder, server.address, show_nothing)
    assert paths == [folder / "mnist" / name for name in mnist.SET.files]
    assert files_below(folder) == {f"mnist/{name}": data for name, data in server.files.items()}
    check_files(mnist, folder)


def test_fetch_leaves_files_that_are_here(server: FileServer, folder: Path) -> None:
    fetch(mnist, folder, server.address, show_nothing)
    (folder / "mnist" / LABELS).unlink()
    server.requested.clear()
    assert fetch(mnist, folder, server.address, show_nothing) == [folder / "mnist" / LABELS]
    assert server.requested == [LABELS]
    assert fetch(mnist, folder, server.address, show_nothing) == []
    assert server.requested == [LABELS]


def test_fetch_takes_the_next_address_if_one_fails(
    server: FileServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_files({name: b"other" for name in server.files}) as first:
        first.files.pop(LABELS)
        addresses = {
            name: (f"{first.address}/{name}", f"{server.address}/{name}") for name in server.files
        }
        monkeypatch.setattr(mnist, "SET", replace(mnist.SET, downloads=addresses))
        fetch(mnist, folder, "", show_nothing)
    assert sorted(first.requested) == sorted(server.requested) == sorted(server.files)
    assert files_below(folder / "mnist") == server.files


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("truncated", "IncompleteRead"),
        ("stalls", "no answer within 0.2 s"),
        ("other", "another content, with the SHA-256 " + hashlib.sha256(b"other").hexdigest()),
        ("absent", "the server answers 404 Not Found"),
    ],
)
def test_fetch_leaves_no_file_of_a_failed_download(
    fault: str, reason: str, server: FileServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 0.2)
    server.faults[LABELS] = fault if fault in ("truncated", "stalls") else ""
    complete = {f"mnist/{name}": data for name, data in server.files.items() if name != LABELS}
    if fault == "other":
        server.files[LABELS] = b"other"
    if fault == "absent":
        del server.files[LABELS]
    with pytest.raises(NotFetched) as failure:
        fetch(mnist, folder, server.address, show_nothing)
    assert f"\n  {server.address}/{LABELS}: {reason}" in str(failure.value)
    # Neither half a file nor a folder of drafts.
    assert files_below(folder) == complete and os.listdir(folder) == ["mnist"]


def test_fetch_without_internet_says_what_to_place_where(tiny_mnist: Path, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NotFetched) as failure:
        fetch(mnist, folder, f"http://127.0.0.1:{port}", show_nothing)
    sentences = str(failure.value)
    assert f"{port}/train-images-idx3-ubyte.gz: Connection refused" in sentences
    assert f"copy them into {folder / 'mnist'}, or into a folder that --data" in sentences
    for file, (digest,) in mnist.SET.files.items():
        assert f"  {mnist.SET.downloads[file][0]}\n    SHA-256 {digest}" in sentences


def test_fetch_without_pooch_says_what_to_install_or_to_place(
    tiny_mnist: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(NotInstalled, match=r"pip install 'steptime\[data\]'\nWithout internet"):
        fetch(mnist, folder, "", show_nothing)


def test_fetch_changes_no_file_that_is_here_and_wrong(server: FileServer, folder: Path) -> None:
    (folder / "MNIST" / "raw").mkdir(parents=True)
    (folder / "MNIST" / "raw" / LABELS).write_bytes(b"mine")
    with pytest.raises(WrongFile, match=f"raw/{LABELS} is not MNIST's .* Remove it and run"):
        fetch(mnist, folder, server.address, show_nothing)
    assert (folder / "MNIST" / "raw" / LABELS).read_bytes() == b"mine"
    assert LABELS not in server.requested and not (folder / "mnist" / LABELS).exists()


def test_fetch_explains_a_folder_that_cannot_be_written(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SteptimeError, match=r"file cannot be written: .* another folder with --d"):
        fetch(mnist, tmp_path / "file", server.address, show_nothing)
    # Not even root may make a folder there.
    with pytest.raises(SteptimeError, match=r"/proc/sets cannot be written: .*"):
        fetch(mnist, Path("/proc/sets"), server.address, show_nothing)


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """CIFAR-10 with two pictures in each file."""
    contents = {}
    for number, name in enumerate(cifar10.SET.files):
        contents[name] = bytes((number, *[number] * cifar10.VALUES)) * 2
    sums = {name: (hashlib.sha256(data).hexdigest(),) for name, data in contents.items()}
    monkeypatch.setattr(cifar10, "SET", replace(cifar10.SET, files=sums))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, data in contents.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def test_fetch_verifies_an_archive_by_its_content(archive: bytes, folder: Path) -> None:
    with serve_files({cifar10.ARCHIVE: archive}) as server:
        paths = fetch(cifar10, folder, server.address, show_nothing)
    assert paths == [folder / "cifar10" / cifar10.ARCHIVE]
    check_files(cifar10, folder)


@pytest.mark.parametrize("damage", ["cut", "changed", "page"])
def test_fetch_refuses_a_damaged_archive(damage: str, archive: bytes, folder: Path) -> None:
    middle = len(archive) // 2
    changed = bytes((archive[middle] ^ 255,))
    contents = {
        "cut": archive[:middle],
        "changed": archive[:middle] + changed + archive[middle + 1 :],
        # What a proxy with a login page answers.
        "page": b"<html>Please log in.</html>",
    }
    with (
        serve_files({cifar10.ARCHIVE: contents[damage]}) as server,
        pytest.raises(NotFetched, match=r"gz: not the archive that its .*") as failure,
    ):
        fetch(cifar10, folder, server.address, show_nothing)
    assert "\n    test_batch.bin in it: SHA-256 " in str(failure.value)
    assert os.listdir(folder) == []


@pytest.mark.slow
def test_fetch_gets_the_real_files(real_data: Path, folder: Path) -> None:
    with serve_files(
        {path.name: path.read_bytes() for path in (real_data / "mnist").iterdir()}
    ) as s:
        assert len(fetch(mnist, folder, s.address, show_nothing)) == 4
