"""What all sets share: found in oddly named folders, checked, framed, cut into batches."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steptime.core.errors import SteptimeError
from steptime.data.sets import NoSet, Samples, data_folder, image_samples, mnist
from steptime.graph import Graph, Net

FILE = "t10k-labels-idx1-ubyte.gz"


def graph(*shape: int, classes: int = 10) -> Graph:
    net = Net("tiny")
    values = net.input(*shape)
    return net.graph(net.dense(net.flatten(values) if len(shape) > 1 else values, classes))


@pytest.mark.parametrize("subfolder", ["mnist", "MNIST/raw", "Mnist-1998", "."])
def test_find_accepts_any_spelling_of_the_folder(subfolder: str, tmp_path: Path) -> None:
    (tmp_path / subfolder).mkdir(parents=True, exist_ok=True)
    (tmp_path / subfolder / FILE).touch()
    assert mnist.SET.find(FILE, tmp_path) == tmp_path / subfolder / FILE


def test_find_ignores_folder_of_another_dataset(tmp_path: Path) -> None:
    (tmp_path / "fashion-mnist").mkdir()
    (tmp_path / "fashion-mnist" / FILE).touch()
    assert mnist.SET.find(FILE, tmp_path) is None


def test_missing_file_error_names_folder_address_and_digest(tmp_path: Path) -> None:
    with pytest.raises(NoSet, match="MNIST is missing: no t10k-labels") as error:
        mnist.SET.find_verified(FILE, tmp_path / "absent")
    assert all(
        text in str(error.value)
        for text in (str(tmp_path / "absent"), "https://", mnist.SET.files[FILE][0])
    )


def test_find_verified_reports_both_digests(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not labels")
    with pytest.raises(
        SteptimeError, match=rf"its SHA-256 is [0-9a-f]{{64}}, expected {mnist.SET.files[FILE][0]}"
    ):
        mnist.SET.find_verified(FILE, tmp_path)


def test_data_folder_is_from_variable_or_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPTIME_DATA", "/sets")
    assert data_folder() == Path("/sets")
    monkeypatch.delenv("STEPTIME_DATA")
    assert data_folder() == Path("data")


def test_image_samples_pads_small_images() -> None:
    pictures = np.full((2, 1, 28, 28), 255, np.uint8)
    batch = image_samples(pictures, np.array([3, 9], np.uint8), graph(1, 32, 32)).batch(slice(0, 2))
    assert batch["input"].shape == (2, 1, 32, 32) and batch["input"].dtype == np.float32
    assert (
        batch["input"].sum() == 2 * 28 * 28
        and batch["input"][0, 0, 2, 2] == 1
        and batch["input"][0, 0, 1, 1] == 0
    )
    assert batch["target"].tolist() == [3, 9] and batch["target"].dtype == np.int64


def test_image_samples_flattens_images() -> None:
    pictures = np.arange(784, dtype=np.uint8).reshape(1, 1, 28, 28)
    batch = image_samples(pictures, np.zeros(1, np.uint8), graph(784)).batch([0])
    assert batch["input"].shape == (1, 784) and batch["input"][0, 51] == np.float32(51 / 255)


@pytest.mark.parametrize(
    "network", [graph(3, 28, 28), graph(1, 24, 24), graph(1, 28, 28, classes=5)]
)
def test_image_samples_refuses_other_shapes(network: Graph) -> None:
    with pytest.raises(
        SteptimeError, match=r"tiny (reads samples of|ends in the) shape .*; the dataset has"
    ):
        image_samples(np.zeros((1, 1, 28, 28), np.uint8), np.array([9], np.uint8), network)


def test_samples_batches_are_in_order_and_of_one_size() -> None:
    samples = Samples(np.arange(7), np.arange(7) * 10)
    assert [batch["input"].tolist() for batch in samples.batches(3)] == [[0, 1, 2], [3, 4, 5]]


def test_missing_file_error_names_digests_of_all_editions(tmp_path: Path) -> None:
    two = replace(mnist.SET, files={FILE: ("aa", "bb")})
    with pytest.raises(NoSet, match=re.escape(f"SHA-256 of {FILE}: aa or bb")):
        two.find_verified(FILE, tmp_path)
