"""CIFAR-10: small photographs of ten classes.

Reads the official binary files, their archive, or lossless mosaics of the images."""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.data.sets import DataSet, Samples, image_samples
from steptime.graph import Graph

ARCHIVE, LABELS = "cifar-10-binary.tar.gz", "labels.u8"
MOSAICS = (*(f"data_batch_{number}.webp" for number in range(1, 6)), "test_batch.webp", LABELS)
ADDRESS = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
SET = DataSet(
    name="cifar10",
    title="CIFAR-10",
    address=ADDRESS,
    # Digests of the unpacked files: the content is verified, whatever format it came in.
    files={
        "data_batch_1.bin": ("cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",),
        "data_batch_2.bin": ("a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",),
        "data_batch_3.bin": ("bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",),
        "data_batch_4.bin": ("014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",),
        "data_batch_5.bin": ("755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",),
        "test_batch.bin": ("8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",),
    },
    preparation=(
        "bytes / 255, so values from 0 to 1, as cnn-cifar10-tf2 has it "
        "(cnn-cifar10-pytorch: from -1 to 1)"
    ),
    other_forms=(ARCHIVE, *MOSAICS),
    downloads={ARCHIVE: (ADDRESS,)},
)
SIDE = 32
# Values of one image: its red, green and blue planes.
VALUES = 3 * SIDE * SIDE
SPLITS = {
    "train": [name for name in SET.files if name.startswith("data")],
    "test": ["test_batch.bin"],
}


def read(folder: Path, split: str, graph: Graph) -> Samples:
    records = np.concatenate([_read_records(name, folder) for name in SPLITS[split]])
    return image_samples(records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0], graph)


def check(folder: Path) -> None:
    """Raise unless the content of all six files is here, in whatever form."""
    for name in SET.files:
        _read_records(name, folder)


# Cached, because a mosaic takes a second to decode.
@cache
def _read_records(name: str, folder: Path) -> NDArray[np.uint8]:
    """A row for each image: its label, then its planes."""
    content, source = _read_content(name, folder)
    SET.verify(name, hashlib.sha256(content).hexdigest(), source)
    return np.frombuffer(content, np.uint8).reshape(-1, 1 + VALUES)


def _read_content(name: str, folder: Path) -> tuple[bytes, str]:
    """The bytes of the binary file, and where they come from."""
    if path := SET.find(name, folder):
        return path.read_bytes(), str(path)
    if path := SET.find(ARCHIVE, folder):
        return read_archive(path, name), f"{name} in {path}"
    if path := SET.find(name.replace(".bin", ".webp"), folder):
        index = list(SET.files).index(name)
        return read_mosaic(path, path.parent / LABELS, index), f"The content of {path}"
    raise SET.missing_file_error(name, folder)


def read_archive(path: Path, name: str) -> bytes:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if Path(member.name).name == name:
                    file = archive.extractfile(member)
                    return file.read() if file else b""
            return b""
    except (tarfile.TarError, OSError, EOFError, zlib.error) as problem:
        raise SteptimeError(
            f"{path} cannot be unpacked: {problem}. Download it again from {SET.address}."
        ) from None


def read_mosaic(path: Path, labels: Path, index: int) -> bytes:
    """A square mosaic of images. `labels` has one byte per image for all six files in order."""
    if not labels.is_file():
        raise SteptimeError(
            f"{path} needs {labels} beside it, with one byte for the label of each image."
        )
    with _import_pillow().open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    row = pixels.shape[0] // SIDE
    count = row * row
    tiles = pixels.reshape(row, SIDE, row, SIDE, 3).transpose(0, 2, 4, 1, 3)
    planes = tiles.reshape(count, VALUES)
    all_labels = np.fromfile(labels, np.uint8)
    file_labels = all_labels[index * count : (index + 1) * count]
    return np.concatenate([file_labels[:, None], planes], axis=1).tobytes()


def _import_pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise NotInstalled(
            "Decoding CIFAR-10 mosaics needs Pillow; install it with: pip install pillow"
        ) from None
    return Image
