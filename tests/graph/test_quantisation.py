from __future__ import annotations

from pathlib import Path

import pytest

from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Tensor, Work, sgd
from steptime.graph.quantisation import not_quantisable, reduced_range


def work(tensor: Tensor, net: Net) -> Work:
    graph = net.graph(tensor)
    return Work(graph, {}, synthetic_batch(graph, 2, 0), sgd(), (synthetic_batch(graph, 2, 1),))


def test_not_quantisable_accepts_a_network_of_products() -> None:
    net = Net("products")
    assert not_quantisable(work(net.dense(net.input(4), 3), net), "X") is None


def test_not_quantisable_rejects_recurrent_layers_and_missing_products() -> None:
    net = Net("language_model")
    language_model = net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 11)
    assert "X cannot quantise its lstm" in str(not_quantisable(work(language_model, net), "X"))
    plain = Net("plain")
    assert "no convolution" in str(not_quantisable(work(plain.relu(plain.input(3)), plain), "X"))


@pytest.mark.parametrize(
    ("flags", "expected"), [("avx2 fma", True), ("avx512_vnni", False), ("avx_vnni", False)]
)
def test_reduced_range_follows_the_cpu_flags(tmp_path: Path, flags: str, expected: bool) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags : sse2 {flags}\n")
    assert reduced_range(tmp_path / "cpuinfo") is expected


def test_reduced_range_is_true_for_an_unknown_processor(tmp_path: Path) -> None:
    assert reduced_range(tmp_path / "absent")
