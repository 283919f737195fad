"""Synthetic batches."""

from __future__ import annotations

import numpy as np
import pytest

from steptime.data.synthetic import synthetic_batch
from steptime.graph import Graph, Net


def images() -> Graph:
    net = Net("images")
    return net.graph(net.dense(net.flatten(net.input(3, 16, 16)), 5))


def words() -> Graph:
    net = Net("words")
    return net.graph(net.embedding(net.tokens(7, 10), 10, 10))


def test_synthetic_images_are_standard_normal() -> None:
    batch = synthetic_batch(images(), 50, 0)
    assert batch["input"].shape == (50, 3, 16, 16) and batch["input"].dtype == np.float32
    assert batch["input"].mean() == pytest.approx(0, abs=0.02)
    assert batch["input"].std() == pytest.approx(1, abs=0.02)


def test_synthetic_targets_cover_every_class() -> None:
    batch = synthetic_batch(images(), 200, 0)
    assert batch["target"].shape == (200,) and batch["target"].dtype == np.int64
    assert set(batch["target"]) == set(range(5))


def test_synthetic_tokens_have_target_at_every_position() -> None:
    batch = synthetic_batch(words(), 50, 0)
    assert batch["input"].shape == batch["target"].shape == (50, 7)
    assert set(batch["input"].flat) == set(range(10)) and batch["input"].dtype == np.int64


def test_synthetic_batch_is_reproducible_by_seed() -> None:
    first, second, other = (synthetic_batch(images(), 2, seed)["input"] for seed in (7, 7, 8))
    assert np.array_equal(first, second) and not np.array_equal(first, other)
