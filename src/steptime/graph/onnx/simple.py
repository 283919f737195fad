"""Products, activations, and how tensors are joined and cut, in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from steptime.graph.onnx.call_site import CallSite


def add(site: CallSite) -> None:
    site.add("Add", *site.layer.inputs)


def concat(site: CallSite) -> None:
    site.add("Concat", *site.layer.inputs, axis=site.op.axis % len(site.layer.shape) + 1)


def dense(site: CallSite) -> None:
    product(site, site.bias())


def product(site: CallSite, bias: list[str]) -> None:
    """x · weightᵀ, plus the bias if there is one."""
    if len(site.layer.shape) == 1:
        site.add("Gemm", site.x, site.weight("weight"), *bias, transB=1)
        return
    turned = site.add("Transpose", site.weight("weight"), part="turned", perm=(1, 0))
    if not bias:
        site.add("MatMul", site.x, turned)
        return
    site.add("Add", site.add("MatMul", site.x, turned, part="product"), *bias)


def dropout(site: CallSite) -> None:
    site.add("Identity", site.x)


def flatten(site: CallSite) -> None:
    site.add("Flatten", site.x, axis=1)


def gelu(site: CallSite) -> None:
    """In the very order of operations that readers know as one kernel; ONNX itself has none before opset 20."""
    one, half = site.floats("one", 1), site.floats("half", 0.5)
    if not site.op.tanh:
        error = site.add(
            "Erf",
            site.add("Div", site.x, site.floats("root", sqrt(2)), part="scaled"),
            part="error",
        )
        whole = site.add("Mul", site.x, site.add("Add", error, one, part="above"), part="whole")
        site.add("Mul", whole, half)
        return
    cube = site.add("Pow", site.x, site.floats("three", 3), part="cube")
    inner = site.add(
        "Add",
        site.x,
        site.add("Mul", cube, site.floats("share", 0.044715), part="bent"),
        part="inner",
    )
    scaled = site.add("Mul", inner, site.floats("root", sqrt(2 / pi)), part="scaled")
    above = site.add("Add", site.add("Tanh", scaled, part="gradient"), one, part="above")
    site.add("Mul", site.add("Mul", site.x, half, part="halved"), above)


def layer_norm(site: CallSite) -> None:
    parts = [site.weight(part) for part in ("weight", "bias")]
    site.add("LayerNormalization", site.x, *parts, axis=-1, epsilon=site.op.epsilon)


def relu(site: CallSite) -> None:
    site.add("Relu", site.x)


def scale(site: CallSite) -> None:
    site.add("Mul", site.x, site.floats("factor", site.op.factor))


def sigmoid(site: CallSite) -> None:
    site.add("Sigmoid", site.x)


def slice_(site: CallSite) -> None:
    bounds = [
        site.integers(part, [value])
        for part, value in (("start", site.op.start), ("stop", site.op.stop))
    ]
    site.add("Slice", site.x, *bounds, site.integers("axis", [-1]))


def tanh(site: CallSite) -> None:
    site.add("Tanh", site.x)


OPS: dict[str, Callable[[CallSite], None]] = {
    write.__name__.rstrip("_"): write
    for write in (
        add,
        concat,
        dense,
        dropout,
        flatten,
        gelu,
        layer_norm,
        relu,
        scale,
        sigmoid,
        slice_,
        tanh,
    )
}
