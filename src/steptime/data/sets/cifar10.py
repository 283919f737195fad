"""CIFAR-10: small photographs of ten kinds, as official binary files, their archive, or lossless mosaics of them."""

from __future__ import annotations

import hashlib
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.data.sets import DataSet, Samples, images
from steptime.graph import Graph

ARCHIVE, LABELS = "cifar-10-binary.tar.gz", "labels.u8"
MOSAICS = (*(f"data_batch_{number}.webp" for number in range(1, 6)), "test_batch.webp", LABELS)
SET = DataSet(
    name="cifar10",
    title="CIFAR-10",
    address="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    # The sums of what the archive holds: whichever way a file came here, its content is what is checked.
    files={
        "data_batch_1.bin": ("cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",),
        "data_batch_2.bin": ("a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",),
        "data_batch_3.bin": ("bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",),
        "data_batch_4.bin": ("014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",),
        "data_batch_5.bin": ("755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",),
        "test_batch.bin": ("8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",),
    },
    preparation="bytes / 255, so values from 0 to 1, as cnn-cifar10-tf2 has it (cnn-cifar10-pytorch: from -1 to 1)",
    other_forms=(ARCHIVE, *MOSAICS),
)
SIDE = 32
VALUES = 3 * SIDE * SIDE  # of one picture: its red, green and blue plane
PARTS = {
    "train": [name for name in SET.files if name.startswith("data")],
    "test": ["test_batch.bin"],
}


def read(folder: Path, part: str, graph: Graph) -> Samples:
    records = np.concatenate([_records(name, folder) for name in PARTS[part]])
    return images(records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0], graph)


@cache  # a mosaic takes a second to decode
def _records(name: str, folder: Path) -> NDArray[np.uint8]:
    """A row per picture: its label, then its planes."""
    content, where = _content(name, folder)
    SET.check(name, hashlib.sha256(content).hexdigest(), where)
    return np.frombuffer(content, np.uint8).reshape(-1, 1 + VALUES)


def _content(name: str, folder: Path) -> tuple[bytes, str]:
    if path := SET.find(name, folder):
        return path.read_bytes(), str(path)
    if path := SET.find(ARCHIVE, folder):
        return from_archive(path, name), f"{name} in {path}"
    if path := SET.find(name.replace(".bin", ".webp"), folder):
        place = list(SET.files).index(name)
        return from_mosaic(path, path.parent / LABELS, place), f"What {path} shows"
    raise SET.missing(name, folder)


def from_archive(path: Path, name: str) -> bytes:
    try:
        with tarfile.open(path) as archive:
            member = next((member for member in archive if Path(member.name).name == name), None)
            file = archive.extractfile(member) if member else None
            return file.read() if file else b""
    except (tarfile.TarError, OSError, EOFError) as problem:
        raise SteptimeError(
            f"{path} cannot be unpacked: {problem}. Get it anew from {SET.address}."
        ) from None


def from_mosaic(path: Path, labels: Path, place: int) -> bytes:
    """Pictures side by side in rows as long as the mosaic is high; the labels of all six files one after the other."""
    if not labels.is_file():
        raise SteptimeError(
            f"{path} needs {labels} beside it, a byte for the label of each picture."
        )
    with _pillow().open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    row = pixels.shape[0] // SIDE
    tiles = (
        pixels.reshape(row, SIDE, row, SIDE, 3).transpose(0, 2, 4, 1, 3).reshape(row * row, VALUES)
    )
    own = np.fromfile(labels, np.uint8)[place * row * row : (place + 1) * row * row]
    return np.concatenate([own[:, None], tiles], axis=1).tobytes()


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise NotInstalled(
            "CIFAR-10 as mosaics is decoded by Pillow; install it with: pip install pillow"
        ) from None
    return Image
