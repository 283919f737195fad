"""Which attention runs where."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from steptime.graph import Layer, Net

FEATURES = 16


def attention_layer(*, heads: int, causal: bool, scale: float = 0.0) -> Layer:
    net = Net("attention")
    x = net.input(6, FEATURES)
    inputs = [net.dense(x, FEATURES) for _ in range(3)]
    mixed = net.attention(*inputs, heads=heads, causal=causal, scale=scale, name="here")
    return net.graph(mixed)["here"]


def attend(jax: Any, layer: Layer, dtype: str, *, has_cudnn: bool) -> Any:
    from steptime.frameworks.jax.context import LoweringContext
    from steptime.frameworks.jax.layout import Layout
    from steptime.frameworks.jax.ops.sequences import attention

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 6, FEATURES)) for _ in range(3)]
    inputs = [jax.numpy.asarray(array, dtype) for array in arrays]
    context = LoweringContext(Layout(last=False), dtype, training=True, has_cudnn=has_cudnn)
    return np.asarray(attention(layer, {}, context, *inputs), np.float64)


@pytest.fixture
def implementations(jax: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those asked for. XLA computes in the place of cuDNN, which the CPU does not have."""
    asked: list[str] = []
    compute = jax.nn.dot_product_attention

    def attend_by_xla(*arrays: Any, implementation: str, **settings: Any) -> Any:
        asked.append(implementation)
        return compute(*arrays, implementation="xla", **settings)

    monkeypatch.setattr(jax.nn, "dot_product_attention", attend_by_xla)
    return asked


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.7])
def test_attention_of_cudnn_gets_the_mask_and_scale_of_the_layer(
    jax: Any, implementations: list[str], causal: bool, scale: float
) -> None:
    layer = attention_layer(heads=2, causal=causal, scale=scale)
    written_out = attend(jax, layer, "bfloat16", has_cudnn=False)
    fused = attend(jax, layer, "bfloat16", has_cudnn=True)
    assert implementations == ["cudnn"]
    np.testing.assert_allclose(fused, written_out, atol=0.03)


@pytest.mark.parametrize(("dtype", "heads"), [("float32", 2), ("bfloat16", 4)])
def test_attention_is_written_out_if_cudnn_cannot_compute_it(
    jax: Any, implementations: list[str], dtype: str, heads: int
) -> None:
    attend(jax, attention_layer(heads=heads, causal=True), dtype, has_cudnn=True)
    assert implementations == []


@pytest.mark.parametrize(
    ("platform", "capability", "expected"),
    [("cpu", None, False), ("gpu", "7.5", False), ("gpu", "8.0", True), ("gpu", "9.0", True)],
)
def test_has_cudnn_attention_needs_an_ampere_gpu(
    platform: str, capability: str | None, expected: bool
) -> None:
    from steptime.frameworks.jax.settings import has_cudnn_attention

    device = SimpleNamespace(platform=platform, compute_capability=capability)
    assert has_cudnn_attention(device) is expected


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_cudnn_computes_what_is_written_out(jax: Any, causal: bool) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import jax as folder

    if reason := folder.unsupported(Case(workload="any", mode="compiled", device="cuda:0")):
        pytest.skip(reason)
    layer = attention_layer(heads=2, causal=causal)
    written_out = attend(jax, layer, "bfloat16", has_cudnn=False)
    fused = attend(jax, layer, "bfloat16", has_cudnn=True)
    np.testing.assert_allclose(fused, written_out, atol=0.03)
