"""The certificate of a real framework: its lowering passes, and fails if a line is wrong."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from steptime import plugins
from steptime.frameworks.pytorch.ops import OPS
from steptime.graph import Net, Tensor, momentum

pytestmark = pytest.mark.slow


def network(net: Net) -> Tensor:
    x = net.relu(
        net.batch_norm(net.conv(net.input(2, 8, 8), 4, 3, stride=2, padding="same", bias=False))
    )
    return net.dense(net.dropout(net.flatten(x), 0.5), 5)


@pytest.fixture
def pytorch(bench: Any) -> Any:
    ready, framework = bench(network, momentum(0.1)), plugins.load("frameworks", "pytorch")
    return lambda **settings: ready.items(framework, framework="pytorch", **settings)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_pytorch_lowering_passes(layout: str, pytorch: Any) -> None:
    items = pytorch(layout=layout)
    assert len(items) == 14 and all(item["passed"] for item in items.values())


def test_inference_certificate_covers_outputs_only(pytorch: Any) -> None:
    items = pytorch(phase="inference")
    assert list(items) == ["outputs"] and items["outputs"]["passed"]


def test_certificate_sees_symmetric_padding(pytorch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def conv(site: Any) -> str:
        return (
            f"conv2d({site.inputs[0]}, {site.weights['weight']}, None, (2, 2), (1, 1), (1, 1), 1)"
        )

    monkeypatch.setitem(OPS, "conv", conv)
    items = pytorch()
    assert not items["outputs"]["passed"] and items["outputs"]["share"] > 10
    assert items["dropout"]["passed"] and items["optimizer rule"]["passed"]
