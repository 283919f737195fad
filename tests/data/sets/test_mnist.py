from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from steptime import networks
from steptime.core.errors import SteptimeError
from steptime.data.sets import mnist


def test_mnist_is_read_from_its_files(tiny_mnist: Path) -> None:
    samples = mnist.read(tiny_mnist, "train", networks.load("mnist-mlp").graph)
    batch = samples.batch(slice(0, 60))
    assert batch["input"].shape == (60, 1, 28, 28) and set(np.unique(batch["input"])) == {0.0, 1.0}
    assert batch["target"].tolist() == [number % 10 for number in range(60)]
    assert len(mnist.read(tiny_mnist, "test", networks.load("lenet5").graph)) == 25


def test_read_idx_takes_shape_from_header(tmp_path: Path) -> None:
    header = bytes((0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3))
    (tmp_path / "a.gz").write_bytes(gzip.compress(header + bytes(range(6))))
    assert mnist.read_idx(tmp_path / "a.gz").tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"\x89PNG", "begins with 89 50 4e 47"),
        (bytes((0, 0, 8, 1, 0, 0, 0, 5, 1)), "announces .5. values and holds 1"),
    ],
)
def test_read_idx_refuses_other_files(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    with pytest.raises(SteptimeError, match=message):
        mnist.read_idx(tmp_path / "a.gz")


def test_real_dataset_is_complete(real_data: Path) -> None:
    graph = networks.load("mnist-mlp").graph
    train, test = (mnist.read(real_data, split, graph) for split in ("train", "test"))
    assert (len(train), len(test)) == (60_000, 10_000)
    assert np.bincount(test.targets).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
    assert train.values.mean() / 255 == pytest.approx(0.1307, abs=1e-4)
