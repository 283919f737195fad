"""A graph as an `nn.Module` whose forward is generated straight-line code.

Weights are read from the module's own dictionaries under flat names: look-ups through nested modules cost 4 % of a
host-bound step. Everything else of a module (state_dict, to, torch.compile) works as usual."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.backends.cudnn.rnn import get_cudnn_mode

from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.inplace import overwrites
from steptime.frameworks.pytorch.ops import NAMES, OPS, RECURRENT, CallSite, own_name
from steptime.frameworks.pytorch.splits import splits
from steptime.graph import Graph, Layer


class Lowered(nn.Module):
    """Weights are the module's own, under flat names."""

    source: str

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.dropping = True  # False: no dropout in training behaviour either
        for name, weight in graph.weights.items():
            values = torch.zeros(weight.shape)
            if weight.trainable:
                self.register_parameter(own_name(name), nn.Parameter(values))
            else:
                self.register_buffer(own_name(name), values)

    def canonical(self) -> dict[str, torch.Tensor]:
        own = {**self._parameters, **self._buffers}
        return {name: own[own_name(name)] for name in self.graph.weights}

    def compact(self) -> None:
        """Recurrent weights in one piece of memory, as cuDNN wants them: else it copies them on every call."""
        for layer in self.graph:
            if layer.op.name in ("lstm", "rnn"):
                _compact(self, layer)
            if layer.op.name == "gru":  # its second bias is put together in every step
                warnings.filterwarnings(
                    "ignore", message="RNN module weights are not part of single contiguous chunk"
                )


def lower_graph(
    graph: Graph,
    *,
    overwrite: bool = True,
    opaque: Callable[[Any], Any] | None = None,
    ops: dict[str, Callable[[CallSite], str]] = OPS,
    more: dict[str, Any] | None = None,
) -> Lowered:
    """`overwrite`: relu and add take their input's memory where no gradient needs it. `opaque` wraps the functions that
    a compiler cannot see through. `more`: what the lines of other `ops` call besides."""
    sites = _sites(graph, overwrites(graph) if overwrite else {})
    source = _source(graph, sites, ops)
    calls = (
        NAMES
        if opaque is None
        else {**NAMES, **{name: opaque(_plain(NAMES[name])) for name in RECURRENT}}
    )
    calls = {**calls, **(more or {})}
    own = type(
        "Lowered", (Lowered,), {"forward": _compile(graph.name, source, calls), "source": source}
    )
    module: Lowered = own(graph)
    for site in sites:
        for name, value in site.constants.items():
            module.register_buffer(name, torch.from_numpy(value), persistent=False)
    return module


def _sites(graph: Graph, overwriting: dict[str, int]) -> list[CallSite]:
    variables = {layer.name: f"x{place}" for place, layer in enumerate(graph)}
    cuts = splits(graph)
    sites = []
    for layer in graph:
        if not layer.inputs or cuts.get(layer.name) == []:
            continue
        if layer.op.name not in OPS:
            raise Unsupported(
                f"{graph.name}: PyTorch has no lowering of {layer.op.name!r} (layer {layer.name!r})."
            )
        weights = {
            name.rpartition(".")[2]: f'{"p" if weight.trainable else "b"}["{own_name(name)}"]'
            for name, weight in layer.weights.items()
        }
        pieces = cuts.get(layer.name, [layer])
        output = ", ".join(variables[piece.name] for piece in pieces)
        sizes = tuple(piece.shape[-1] for piece in pieces) if len(pieces) > 1 else ()
        inputs = [variables[name] for name in layer.value_inputs]
        sites.append(CallSite(layer, output, inputs, weights, overwriting.get(layer.name), sizes))
    return sites


def _source(graph: Graph, sites: list[CallSite], ops: dict[str, Callable[[CallSite], str]]) -> str:
    variables = {layer.name: f"x{place}" for place, layer in enumerate(graph)}
    last = {variable: site for site in sites for variable in site.inputs}
    lines = [
        f"def forward(self, {variables[graph.input.name]}):",
        "p, b, training = self._parameters, self._buffers, self.training",
    ]
    if any(layer.op.name == "dropout" for layer in graph):
        lines.append("dropping = training and self.dropping")
    for site in sites:
        # Let go behind the last use, as nested modules do: else every activation lives until the end.
        gone = [variable for variable in dict.fromkeys(site.inputs) if last.get(variable) is site]
        drop = f"; del {', '.join(gone)}" if gone else ""
        lines.append(f"{site.output} = {ops[site.op.name](site)}{drop}  # {site.layer.name}")
    return "\n    ".join([*lines, f"return {variables[graph.output]}"]) + "\n"


def _compile(name: str, source: str, names: dict[str, Any]) -> Any:
    filename = f"<{name}, generated>"
    linecache.cache[filename] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        filename,
    )  # for tracebacks
    exec(compile(source, filename, "exec"), names)
    return names["forward"]


def _plain(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python, which can be marked; a builtin cannot."""
    return lambda *arguments: call(*arguments)


def _compact(module: Lowered, layer: Layer) -> None:
    own, op = module.canonical(), layer.op.settings()
    parts = [own[f"{layer.name}.{part}"] for part in ("weight_input", "weight_hidden", "bias")]
    parts.append(module.get_buffer(own_name(f"{layer.name}.zero_bias")))
    if not torch.backends.cudnn.is_acceptable(parts[0]):
        return
    name = "LSTM" if layer.op.name == "lstm" else "RNN_RELU" if op["relu"] else "RNN_TANH"
    mode, units, features = get_cudnn_mode(name), parts[1].shape[1], parts[0].shape[1]
    with torch.no_grad():
        torch._cudnn_rnn_flatten_weight(parts, len(parts), features, mode, units, 0, 1, True, False)
