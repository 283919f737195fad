"""What ONNX Runtime and OpenVINO share: mistakes in the graph as an ONNX model."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.mistakes.mistake import Patch, Patcher

from steptime.graph import onnx
from steptime.graph.onnx import call_site, images, sequences

OPS = onnx.OPS


def wrong_op(op: str, wrong: Callable[..., Any]) -> Patch:
    def patch(patcher: Patcher) -> None:
        patcher.entry(OPS, op, wrong)

    return patch


def wrong_attributes(operator: str, **wrong: Any) -> Patch:
    """Nodes of this operator get other attributes. A function makes a new value of the old one."""

    def patch(patcher: Patcher) -> None:
        def add(original: Any, self: Any, name: str, *inputs: str, **attributes: Any) -> str:
            if name == operator:
                for key, value in wrong.items():
                    attributes[key] = value(attributes[key]) if callable(value) else value
            output: str = original(self, name, *inputs, **attributes)
            return output

        patcher.function(call_site.CallSite, "add", add)

    return patch


def wrong_operator(operator: str, other: str) -> Patch:
    def patch(patcher: Patcher) -> None:
        def add(original: Any, self: Any, name: str, *inputs: str, **attributes: Any) -> str:
            output: str = original(self, other if name == operator else name, *inputs, **attributes)
            return output

        patcher.function(call_site.CallSite, "add", add)

    return patch


def wrong_inputs(operator: str, order: Callable[[list[str]], list[str]]) -> Patch:
    """Nodes of this operator get their inputs in another order."""

    def patch(patcher: Patcher) -> None:
        def add(original: Any, self: Any, name: str, *inputs: str, **attributes: Any) -> str:
            names = order(list(inputs)) if name == operator else inputs
            output: str = original(self, name, *names, **attributes)
            return output

        patcher.function(call_site.CallSite, "add", add)

    return patch


def wrong_settings(op: str, **settings: Any) -> Patch:
    """The op gets other settings than the layer has."""

    def compute(original: Any, site: Any) -> None:
        site.layer = with_settings(site.layer, site.op.settings() | settings)
        original(site)

    return wrong_op(op, compute)


def wrong_weight(role: str, change: Callable[[Any], Any], *, op: str = "") -> Patch:
    """Weights of this role are changed when the model is written."""

    def patch(patcher: Patcher) -> None:
        def model(original: Any, graph: Any, weights: Any, **settings: Any) -> Any:
            changed = dict(weights)
            for layer in graph:
                for name in layer.weights:
                    if name.endswith(f".{role}") and op in ("", layer.op.name):
                        changed[name] = change(weights[name]).astype(weights[name].dtype)
            return original(graph, changed, **settings)

        from steptime.graph.onnx import program

        patcher.function(program, "onnx_model", model)

    return patch


def wrong_constant(suffix: str, change: Callable[[Any], Any]) -> Patch:
    """Constants of layers, such as masks and scales, are changed."""

    def patch(patcher: Patcher) -> None:
        def constant(original: Any, self: Any, name: str, value: Any) -> str:
            changed = change(value).astype(value.dtype) if name == suffix else value
            output: str = original(self, name, changed)
            return output

        patcher.function(call_site.CallSite, "_constant", constant)

    return patch


def wrong_gates(table: str, gates: tuple[int, ...]) -> Patch:
    return lambda patcher: patcher.value(sequences, table, gates)


def ignore(op: str) -> Patch:
    return wrong_op(op, lambda original, site: site.add("Identity", site.x))


def reorder_pads(pads: tuple[int, ...]) -> tuple[int, ...]:
    """Height and width before the image swapped with those after it."""
    top, left, bottom, right = pads
    return bottom, right, top, left


def wrong_pool_pads(change: Callable[[Any], Any]) -> Patch:
    def patch(patcher: Patcher) -> None:
        patcher.function(images, "covering_pads", lambda original, layer: change(original(layer)))

    return patch


def shift_mask(mask: Any) -> Any:
    return np.triu(np.full(mask.shape, -np.inf), 2)


def flatten_last(original: Any, site: Any) -> None:
    last = site.add("Transpose", site.x, suffix="last", perm=(0, 2, 3, 1))
    site.add("Flatten", last, axis=1)


def reset_before(original: Any, site: Any) -> None:
    original(site)
    for node in site.nodes:
        if node.op_type == "GRU":
            del node.attribute[-1]


def slice_later(original: Any, site: Any) -> None:
    """By one feature; the last one becomes the first."""
    if not site.layer.vocabulary:
        features = site.layer.input_shapes[0][-1]
        order = site.integers("order", np.roll(np.arange(features), -1))
        rolled = site.add("Gather", site.x, order, suffix="rolled", axis=-1)
        start = site.integers("start", [site.op.start])
        stop = site.integers("stop", [site.op.stop])
        site.add("Slice", rolled, start, stop, site.integers("axis", [-1]))
    else:
        original(site)


def to_fp16(weight: Any) -> Any:
    return weight.astype(np.float16)


def to_bf16(weight: Any) -> Any:
    """By cutting off half of the bits."""
    bits = np.ascontiguousarray(weight, np.float32).view(np.uint32)
    return (bits & 0xFFFF0000).view(np.float32)


def without_dilation(original: Any, site: Any) -> None:
    """Padded so that the shape fits."""
    if site.op.dilation == (1, 1):
        original(site)
    else:
        wrong = site.op.settings() | {"dilation": (1, 1), "padding": ((1, 1), (1, 1))}
        site.layer = with_settings(site.layer, wrong)
        original(site)


def with_settings(layer: Any, settings: dict[str, Any]) -> Any:
    return SimpleNamespace(
        name=layer.name,
        shape=layer.shape,
        inputs=layer.inputs,
        input_shapes=layer.input_shapes,
        weights=layer.weights,
        op=SimpleNamespace(**settings),
    )
