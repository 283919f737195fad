"""Masks are read out of a training step, and each way to draw them wrongly is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.frameworks.numpy import ops
from steptime.graph import Net, Tensor, Work
from steptime.tasks.certify.judge import Comparison
from steptime.tasks.certify.masks import mask_comparisons, mask_probes, read_drawing

CASE = Case(workload="probe", framework="numpy", precision="fp64", phase="training")


def features(net: Net, rate: float) -> Tensor:
    return net.dense(net.dropout(net.input(8), rate), 4)


def sequence(net: Net, rate: float) -> Tensor:
    return net.dense(net.dropout(net.embedding(net.tokens(5, 11), 11, 6), rate), 11)


def image(net: Net, rate: float) -> Tensor:
    return net.dense(net.flatten(net.dropout(net.conv(net.input(2, 6, 6), 4, 3), rate)), 4)


def probe_of(build: Callable[[Net, float], Tensor], rate: float = 0.5) -> Work:
    net = Net("net")
    (probe,) = mask_probes(net.graph(build(net, rate))).values()
    return probe


def comparisons_of(probe: Work, case: Case = CASE) -> list[Comparison]:
    return mask_comparisons(read_drawing(reference.lower(probe, case), probe), probe)


def mistakes(probe: Work) -> str:
    return "; ".join(entry.where for entry in comparisons_of(probe) if entry.share > 1)


@pytest.mark.parametrize("build", [features, sequence, image])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.65])
def test_mask_comparisons_pass_right_dropout(build: Any, rate: float) -> None:
    probe = probe_of(build, rate)
    for seed in range(20):
        entries = comparisons_of(probe, replace(CASE, seed=seed))
        assert max(entry.share for entry in entries) < 1


def test_read_drawing_finds_the_masks_that_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    original = ops.OPS["dropout"]

    def dropout(layer: Any, weights: Any, context: Any, x: Any) -> Any:
        y, backward = original(layer, weights, context, x)
        drawn.append(y != 0)
        return y, backward

    monkeypatch.setitem(ops.OPS, "dropout", dropout)
    probe = probe_of(image)
    drawing = read_drawing(reference.lower(probe, CASE), probe)
    np.testing.assert_array_equal(drawing.masks, np.reshape(drawn, drawing.masks.shape))
    assert drawing.change_error < 1e-9


def install(
    monkeypatch: pytest.MonkeyPatch,
    draw: Callable[[Any, Any, float], Any],
    *,
    backward: bool = True,
) -> None:
    """`draw`: the factors for an array, from a generator and the rate."""

    def dropout(layer: Any, weights: Any, context: Any, x: Any) -> Any:
        rate = layer.op.settings()["rate"]
        factors = draw(context.rng, x, rate)
        return x * factors, lambda gradient: ([gradient * factors if backward else gradient], {})

    monkeypatch.setitem(ops.OPS, "dropout", dropout)


def keep(rng: Any, shape: Any, rate: float) -> Any:
    return (rng.random(shape) >= rate) / (1 - rate)


WRONG: dict[str, tuple[Callable[[Any, Any, float], Any], str]] = {
    "never drops": (lambda rng, x, rate: np.ones_like(x), "same masks"),
    "drops the rate twice": (lambda rng, x, rate: keep(rng, x.shape, 0.3), "kept"),
    "fixed mask": (
        lambda rng, x, rate: keep(np.random.default_rng(x.shape[0]), x.shape, rate),
        "step to step",
    ),
    "one mask for all samples": (
        lambda rng, x, rate: keep(rng, (1, *x.shape[1:]), rate) * np.ones_like(x),
        "sample to sample",
    ),
    "whole channels": (
        lambda rng, x, rate: keep(rng, (*x.shape[:2], 1, 1), rate) * np.ones_like(x),
        "height to height",
    ),
    "one mask for all channels": (
        lambda rng, x, rate: keep(rng, (len(x), 1, *x.shape[2:]), rate) * np.ones_like(x),
        "channel to channel",
    ),
    "kept values not scaled": (
        lambda rng, x, rate: keep(rng, x.shape, rate) * (1 - rate),
        "same masks",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mask_comparisons_see_wrong_masks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, expected = WRONG[name]
    probe = probe_of(image)
    install(monkeypatch, draw)
    assert expected in mistakes(probe)


def test_mask_comparisons_see_one_mask_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[Any] = []

    def draw(rng: Any, x: Any, rate: float) -> Any:
        """Every second layer takes the mask of the one before."""
        masks.append(masks[-1] if len(masks) % 2 else keep(rng, x.shape, rate))
        return masks[-1]

    probe = probe_of(features)
    install(monkeypatch, draw)
    assert "layer to layer" in mistakes(probe)


def test_mask_comparisons_see_two_masks_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[Any] = []

    def draw(rng: Any, x: Any, rate: float) -> Any:
        """Two layers draw in each step; every second step has the masks of the one before last."""
        masks.append(masks[-4] if len(masks) >= 4 else keep(rng, x.shape, rate))
        return masks[-1]

    probe = probe_of(features)
    install(monkeypatch, draw)
    assert "step to step, 2 apart" in mistakes(probe)


def test_mask_comparisons_see_halves_that_share_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(rng: Any, x: Any, rate: float) -> Any:
        half = keep(rng, (len(x) // 2, *x.shape[1:]), rate)
        return np.concatenate([half, half])

    probe = probe_of(features)
    install(monkeypatch, draw)
    assert "sample to sample, 6 apart" in mistakes(probe)


def test_mask_comparisons_see_a_mask_ignored_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = probe_of(image)
    install(monkeypatch, lambda rng, x, rate: keep(rng, x.shape, rate), backward=False)
    assert "conv1" in mistakes(probe)


def test_mask_probes_have_every_rank_and_rate_of_the_network() -> None:
    net = Net("net")
    x = net.dropout(net.conv(net.input(2, 6, 6), 4, 3), 0.2)
    x = net.dropout(net.dropout(net.flatten(x), 0.2), 0.5)
    probes = mask_probes(net.graph(net.dense(x, 3)))
    assert list(probes) == ["rank 4, rate 0.2", "rank 2, rate 0.2", "rank 2, rate 0.5"]
