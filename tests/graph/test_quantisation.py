from __future__ import annotations

from pathlib import Path

import pytest

from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Tensor, Work, sgd
from steptime.graph.quantisation import not_quantisable, reduced_range


def work(tensor: Tensor, net: Net) -> Work:
    graph = net.graph(tensor)
    return Work(graph, {}, synthetic_batch(graph, 2, 0), sgd(), (synthetic_batch(graph, 2, 1),))


def test_a_network_of_products_can_be_quantised() -> None:
    net = Net("products")
    assert not_quantisable(work(net.dense(net.input(4), 3), net), "X") is None


def test_recurrent_layers_and_networks_without_products_can_not() -> None:
    net = Net("words")
    words = net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 11)
    assert "X cannot quantise its lstm" in str(not_quantisable(work(words, net), "X"))
    plain = Net("plain")
    assert "no convolution" in str(not_quantisable(work(plain.relu(plain.input(3)), plain), "X"))


@pytest.mark.parametrize(
    ("flags", "expected"), [("avx2 fma", True), ("avx512_vnni", False), ("avx_vnni", False)]
)
def test_weights_keep_to_seven_bits_without_exact_products(
    tmp_path: Path, flags: str, expected: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags : sse2 {flags}\n")
    assert reduced_range(tmp_path / "cpuinfo") is expected


def test_an_unknown_processor_is_taken_to_lack_them(tmp_path: Path) -> None:
    assert reduced_range(tmp_path / "absent")
