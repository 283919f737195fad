"""Products, activations, joining and slicing, in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from steptime.graph.onnx.call_site import CallSite


def add(site: CallSite) -> None:
    site.add("Add", *site.layer.inputs)


def concat(site: CallSite) -> None:
    # The batch comes first.
    axis = site.op.axis % len(site.layer.shape) + 1
    site.add("Concat", *site.layer.inputs, axis=axis)


def dense(site: CallSite) -> None:
    product(site, site.bias())


def product(site: CallSite, bias: list[str]) -> None:
    """x · weightᵀ, plus the bias if there is one."""
    # Gemm takes matrices only; sequences need MatMul and an explicit transpose.
    if len(site.layer.shape) == 1:
        site.add("Gemm", site.x, site.weight("weight"), *bias, transB=1)
        return
    transposed = site.add("Transpose", site.weight("weight"), suffix="transposed", perm=(1, 0))
    if not bias:
        site.add("MatMul", site.x, transposed)
        return
    scores = site.add("MatMul", site.x, transposed, suffix="product")
    site.add("Add", scores, *bias)


def dropout(site: CallSite) -> None:
    # The model is for inference, in which dropout does nothing.
    site.add("Identity", site.x)


def flatten(site: CallSite) -> None:
    site.add("Flatten", site.x, axis=1)


def gelu(site: CallSite) -> None:
    """In the order of operations that runtimes recognise and fuse into one kernel.

    ONNX itself has no Gelu before opset 20."""
    if site.op.tanh:
        _gelu_tanh(site)
    else:
        _gelu_erf(site)


def _gelu_erf(site: CallSite) -> None:
    unit = site.floats("one", 1)
    half = site.floats("half", 0.5)
    scaled = site.add("Div", site.x, site.floats("root", sqrt(2)), suffix="scaled")
    error = site.add("Erf", scaled, suffix="error")
    above = site.add("Add", error, unit, suffix="above")
    doubled = site.add("Mul", site.x, above, suffix="doubled")
    site.add("Mul", doubled, half)


def _gelu_tanh(site: CallSite) -> None:
    unit = site.floats("one", 1)
    half = site.floats("half", 0.5)
    cube = site.add("Pow", site.x, site.floats("three", 3), suffix="cube")
    cubic = site.add("Mul", cube, site.floats("coefficient", 0.044715), suffix="cubic")
    inner = site.add("Add", site.x, cubic, suffix="inner")
    scaled = site.add("Mul", inner, site.floats("root", sqrt(2 / pi)), suffix="scaled")
    tanh = site.add("Tanh", scaled, suffix="tanh")
    above = site.add("Add", tanh, unit, suffix="above")
    halved = site.add("Mul", site.x, half, suffix="halved")
    site.add("Mul", halved, above)


def layer_norm(site: CallSite) -> None:
    weights = [site.weight("weight"), site.weight("bias")]
    site.add("LayerNormalization", site.x, *weights, axis=-1, epsilon=site.op.epsilon)


def relu(site: CallSite) -> None:
    site.add("Relu", site.x)


def scale(site: CallSite) -> None:
    site.add("Mul", site.x, site.floats("factor", site.op.factor))


def sigmoid(site: CallSite) -> None:
    site.add("Sigmoid", site.x)


def slice_(site: CallSite) -> None:
    start = site.integers("start", [site.op.start])
    stop = site.integers("stop", [site.op.stop])
    site.add("Slice", site.x, start, stop, site.integers("axis", [-1]))


def tanh(site: CallSite) -> None:
    site.add("Tanh", site.x)


OPS: dict[str, Callable[[CallSite], None]] = {
    "add": add,
    "concat": concat,
    "dense": dense,
    "dropout": dropout,
    "flatten": flatten,
    "gelu": gelu,
    "layer_norm": layer_norm,
    "relu": relu,
    "scale": scale,
    "sigmoid": sigmoid,
    "slice": slice_,
    "tanh": tanh,
}
