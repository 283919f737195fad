"""Initial weights and files of weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from steptime.core.errors import SteptimeError
from steptime.graph import Graph, Initializer, Net
from steptime.graph.weights import initial_weights, load, save


def tiny(units: int = 3, initializer: Initializer | None = None) -> Graph:
    net = Net("tiny")
    return net.graph(net.dense(net.input(400), units, initializer=initializer))


def test_initial_weights_are_reproducible_from_the_seed() -> None:
    first, second, other = (initial_weights(tiny(), seed)["dense1.weight"] for seed in (7, 7, 8))
    assert np.array_equal(first, second) and not np.array_equal(first, other)


def test_initial_weights_default_to_uniform_by_fan_in() -> None:
    weight = initial_weights(tiny(50), 0)["dense1.weight"]
    assert weight.dtype == np.float32
    assert 0.049 < np.abs(weight).max() <= 0.05
    assert weight.std() == pytest.approx(0.05 / 3**0.5, rel=0.02)


def test_initial_weights_truncated_normal_is_cut_at_two_deviations() -> None:
    weight = initial_weights(tiny(50, Initializer("truncated_normal", 0.1)), 0)["dense1.weight"]
    assert 0.19 < np.abs(weight).max() <= 0.2
    assert weight.std() == pytest.approx(0.088, rel=0.02)  # a normal cut at two of its deviations


def test_initial_weights_constant_fills_the_weight() -> None:
    assert (
        initial_weights(tiny(initializer=Initializer("constant", 0.25)), 0)["dense1.weight"] == 0.25
    ).all()


def test_initial_weights_sinusoids_do_not_depend_on_the_seed() -> None:
    net = Net("tiny")
    graph = net.graph(net.positions(net.input(3, 4), learned=False))
    first, second = (initial_weights(graph, seed)["positions1.weight"] for seed in (0, 1))
    assert np.array_equal(first, second) and first[0].tolist() == [0, 1, 0, 1]


def test_weights_survive_save_and_load(tmp_path: Path) -> None:
    weights = {
        name: array.T.copy().T for name, array in initial_weights(tiny(), 0).items()
    }  # not in row order
    save(tmp_path / "tiny.safetensors", weights)
    read = load(tmp_path / "tiny.safetensors", tiny())
    assert list(read) == sorted(weights) and all(
        np.array_equal(read[name], weights[name]) for name in weights
    )


def test_load_rejects_weights_of_another_shape(tmp_path: Path) -> None:
    save(tmp_path / "tiny.safetensors", dict(initial_weights(tiny(), 0)))
    with pytest.raises(
        SteptimeError, match=r"tiny needs 'dense1.weight' of shape \(4, 400\), found \(3, 400\)"
    ):
        load(tmp_path / "tiny.safetensors", tiny(4))


def test_load_names_a_missing_weight(tmp_path: Path) -> None:
    save(tmp_path / "tiny.safetensors", {"dense1.bias": np.zeros(3)})
    with pytest.raises(
        SteptimeError, match=r"needs the weight 'dense1.weight' of shape \(3, 400\); it is absent"
    ):
        load(tmp_path / "tiny.safetensors", tiny())


def test_load_names_an_unknown_weight(tmp_path: Path) -> None:
    save(tmp_path / "tiny.safetensors", {**initial_weights(tiny(), 0), "dense1.bais": np.zeros(3)})
    with pytest.raises(
        SteptimeError, match=r"No weight of tiny 'dense1.bais'. Did you mean 'dense1.bias'"
    ):
        load(tmp_path / "tiny.safetensors", tiny())


def test_load_rejects_a_file_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not weights")
    with pytest.raises(SteptimeError, match="is not a safetensors file"):
        load(tmp_path / "notes.txt")


def test_load_rejects_weights_that_are_not_finite(tmp_path: Path) -> None:
    weights = dict(initial_weights(tiny(), 0))
    name = next(iter(weights))
    save(tmp_path / "w", {**weights, name: weights[name] * np.nan})
    with pytest.raises(SteptimeError, match="has numbers that are not finite"):
        load(tmp_path / "w", tiny())


def test_load_rejects_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="No file"):
        load(tmp_path / "absent")


def test_save_leaves_the_old_file_if_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    save(path, dict(initial_weights(tiny(), 0)))
    before = path.read_bytes()
    code = (
        "import resource, sys, numpy\nfrom steptime.graph.weights import save\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "save(sys.argv[1], {'a': numpy.zeros(4000)})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert "cannot be written" in done.stderr and "File too large" in done.stderr
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_save_stores_facts_in_the_file(tmp_path: Path) -> None:
    save(tmp_path / "tiny.safetensors", dict(initial_weights(tiny(), 0)), {"network": "tiny"})
    with safe_open(tmp_path / "tiny.safetensors", "numpy") as file:
        assert file.metadata() == {"network": "tiny"}
