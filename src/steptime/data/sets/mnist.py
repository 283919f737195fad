"""MNIST: handwritten digits, in the four idx files of its authors."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import SteptimeError
from steptime.data.sets import DataSet, Samples, image_samples
from steptime.graph import Graph

FILES: dict[str, tuple[str, ...]] = {
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    "t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SET = DataSet(
    name="mnist",
    title="MNIST",
    address=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/ "
        "(the files of http://yann.lecun.com/exdb/mnist/)"
    ),
    files=FILES,
    downloads={file: tuple(mirror + file for mirror in MIRRORS) for file in FILES},
    preparation=(
        "bytes / 255, so values from 0 to 1; a black frame if the network reads larger images"
    ),
)
PREFIXES = {"train": "train", "test": "t10k"}
UNSIGNED_BYTES = 0x08


def read(folder: Path, split: str, graph: Graph) -> Samples:
    prefix = PREFIXES[split]
    pictures = read_idx(SET.find_verified(f"{prefix}-images-idx3-ubyte.gz", folder))
    labels = read_idx(SET.find_verified(f"{prefix}-labels-idx1-ubyte.gz", folder))
    return image_samples(pictures[:, None], labels, graph)


def read_idx(path: Path) -> NDArray[Any]:
    """Two zeros, the value type, the number of axes, four bytes for each axis, the values."""
    content = gzip.decompress(path.read_bytes())
    if len(content) < 4 or content[:3] != bytes((0, 0, UNSIGNED_BYTES)):
        start = content[:4].hex(" ") or "nothing"
        raise SteptimeError(f"{path} is not an idx file of bytes: it begins with {start}.")
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, offset=4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if values.size != int(shape.prod()):
        raise SteptimeError(f"{path} announces {shape.tolist()} values and holds {values.size}.")
    return values.reshape(shape)
