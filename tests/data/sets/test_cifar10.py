from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steptime import networks
from steptime.core.errors import NotInstalled, SteptimeError
from steptime.data.sets import NoSet, cifar10

pytestmark = pytest.mark.slow

# As its author publishes them.
OFFICIAL_MD5 = {
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
}
GRAPH = networks.load("cifar10-cnn").graph


@pytest.fixture
def records() -> dict[str, bytes]:
    """Four pictures for each file, as the binary files hold them."""
    random = np.random.default_rng(0)
    contents = {}
    for name in cifar10.SET.files:
        rows = random.integers(0, 256, (4, 3073), dtype=np.uint8)
        rows[:, 0] = random.integers(0, 10, 4)
        contents[name] = rows.tobytes()
    return contents


@pytest.fixture(autouse=True)
def sums(
    records: dict[str, bytes], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "real_data" not in request.fixturenames:
        files = {name: (hashlib.sha256(content).hexdigest(),) for name, content in records.items()}
        monkeypatch.setattr(cifar10, "SET", replace(cifar10.SET, files=files))


def mosaics(folder: Path, records: dict[str, bytes]) -> None:
    """Two rows of two pictures, without loss, and all labels in one file."""
    image = pytest.importorskip("PIL.Image", reason="mosaics are decoded by Pillow")
    rows = {
        name: np.frombuffer(content, np.uint8).reshape(4, 3073) for name, content in records.items()
    }
    for name, row in rows.items():
        pixels = row[:, 1:].reshape(2, 2, 3, 32, 32).transpose(0, 3, 1, 4, 2).reshape(64, 64, 3)
        image.fromarray(pixels).save(folder / name.replace(".bin", ".webp"), lossless=True)
    (folder / "labels.u8").write_bytes(
        np.concatenate([row[:, 0] for row in rows.values()]).tobytes()
    )


def binaries(folder: Path, records: dict[str, bytes]) -> None:
    for name, content in records.items():
        (folder / name).write_bytes(content)


def archive(folder: Path, records: dict[str, bytes]) -> None:
    with tarfile.open(folder / cifar10.ARCHIVE, "w:gz") as file:
        for name, content in records.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("write", [binaries, archive, mosaics])
def test_cifar10_forms_give_equal_samples(write, records: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "cifar-10").mkdir()
    write(tmp_path / "cifar-10", records)
    train, test = (cifar10.read(tmp_path, split, GRAPH) for split in ("train", "test"))
    first = np.frombuffer(records["data_batch_1.bin"], np.uint8)
    assert (len(train), len(test)) == (20, 4) and train.targets[0] == first[0]
    assert np.array_equal(train.batch([0])["input"][0].ravel(), first[1:3073] / np.float32(255))


def test_cifar10_detects_changed_image(records: dict[str, bytes], tmp_path: Path) -> None:
    mosaics(tmp_path, records)
    labels = bytearray((tmp_path / "labels.u8").read_bytes())
    labels[20] ^= 1  # the first of the test part
    (tmp_path / "labels.u8").write_bytes(labels)
    with pytest.raises(
        SteptimeError, match=r"The content of .*test_batch.webp is not CIFAR-10's test_batch.bin"
    ):
        cifar10.read(tmp_path, "test", GRAPH)


def test_cifar10_refuses_mosaics_without_labels(records: dict[str, bytes], tmp_path: Path) -> None:
    mosaics(tmp_path, records)
    (tmp_path / "labels.u8").unlink()
    with pytest.raises(SteptimeError, match=r"needs .*labels.u8 beside it"):
        cifar10.read(tmp_path, "test", GRAPH)


def test_cifar10_refuses_truncated_archive(tmp_path: Path) -> None:
    (tmp_path / cifar10.ARCHIVE).write_bytes(b"\x1f\x8b torn")
    with pytest.raises(SteptimeError, match="cannot be unpacked"):
        cifar10.read(tmp_path, "test", GRAPH)


def test_cifar10_explains_missing_dataset(tmp_path: Path) -> None:
    with pytest.raises(
        NoSet, match=r"CIFAR-10 is missing: no data_batch_1.bin .*cifar-10-binary.tar.gz"
    ):
        cifar10.read(tmp_path, "train", GRAPH)


def test_cifar10_names_install_line_of_pillow(
    records: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mosaics(tmp_path, records)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(NotInstalled, match="pip install pillow"):
        cifar10.read(tmp_path, "test", GRAPH)


def test_cifar10_real_dataset_is_official(real_data: Path) -> None:
    pytest.importorskip("PIL", reason="mosaics are decoded by Pillow")
    test = cifar10.read(real_data, "test", GRAPH)
    assert len(test) == 10_000 and np.bincount(test.targets).tolist() == [1000] * 10
    for name, md5 in OFFICIAL_MD5.items():
        content, _ = cifar10._read_content(name, real_data)
        assert hashlib.md5(content).hexdigest() == md5
