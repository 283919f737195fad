"""A graph as an `nn.Module` whose forward method is generated straight-line code.

Weights are read from the module's own dictionaries under flat names, because look-ups through
nested modules cost 4 % of a host-bound step. Everything else of a module (state_dict, to,
torch.compile) works as usual."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.backends.cudnn.rnn import get_cudnn_mode

from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.inplace import inplace_inputs
from steptime.frameworks.pytorch.ops import FUNCTIONS, OPS, RECURRENT, CallSite, flat_name
from steptime.frameworks.pytorch.slice_groups import slice_groups
from steptime.graph import Graph, Layer

Ops = Mapping[str, Callable[[CallSite], str]]


class Lowered(nn.Module):
    """Holds the weights of a graph under flat names."""

    source: str

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        # False: no dropout in training behaviour either.
        self.dropping = True
        for name, weight in graph.weights.items():
            values = torch.zeros(weight.shape)
            if weight.trainable:
                self.register_parameter(flat_name(name), nn.Parameter(values))
            else:
                self.register_buffer(flat_name(name), values)

    def canonical(self) -> dict[str, torch.Tensor]:
        """All weights by canonical name."""
        tensors: dict[str, Any] = {**self._parameters, **self._buffers}
        return {name: tensors[flat_name(name)] for name in self.graph.weights}

    def compact(self) -> None:
        """Puts recurrent weights into one piece of memory: else cuDNN copies them in every call."""
        for layer in self.graph:
            if layer.op.name in ("lstm", "rnn"):
                _compact(self, layer)
            # The second bias of a GRU is put together in every step, so this one is never compact.
            if layer.op.name == "gru":
                warnings.filterwarnings(
                    "ignore", message="RNN module weights are not part of single contiguous chunk"
                )


def lower_graph(
    graph: Graph,
    *,
    overwrite: bool = True,
    opaque: Callable[[Any], Any] | None = None,
    ops: Ops = OPS,
    functions: dict[str, Any] | None = None,
) -> Lowered:
    """A module with all weights zero.

    `overwrite`: relu and add are in place if no gradient needs their input. `opaque` wraps the
    functions that a compiler cannot trace. `functions`: further ones, which the code of `ops`
    calls."""
    sites = _call_sites(graph, inplace_inputs(graph) if overwrite else {})
    source = _source(graph, sites, ops)
    namespace = dict(FUNCTIONS)
    if opaque is not None:
        for name in RECURRENT:
            namespace[name] = opaque(_python_function(FUNCTIONS[name]))
    namespace.update(functions or {})
    attributes = {"forward": _compile(graph.name, source, namespace), "source": source}
    module_class: type[Lowered] = type("Lowered", (Lowered,), attributes)
    module = module_class(graph)
    for site in sites:
        for name, value in site.constants.items():
            module.register_buffer(name, torch.from_numpy(value), persistent=False)
    return module


def _variables(graph: Graph) -> dict[str, str]:
    return {layer.name: f"x{index}" for index, layer in enumerate(graph)}


def _call_sites(graph: Graph, inplace: dict[str, int]) -> list[CallSite]:
    """In order; none for the input, and one for all slices of a group."""
    variables = _variables(graph)
    groups = slice_groups(graph)
    sites = []
    for layer in graph:
        slices = groups.get(layer.name, [layer])
        if not layer.inputs or not slices:
            continue
        if layer.op.name not in OPS:
            raise Unsupported(
                f"{graph.name}: PyTorch has no lowering of {layer.op.name!r} "
                f"(layer {layer.name!r})."
            )
        site = CallSite(
            layer=layer,
            output=", ".join(variables[piece.name] for piece in slices),
            inputs=[variables[name] for name in layer.value_inputs],
            weights=_weight_expressions(layer),
            overwrites=inplace.get(layer.name),
            sizes=tuple(piece.shape[-1] for piece in slices) if len(slices) > 1 else (),
        )
        sites.append(site)
    return sites


def _weight_expressions(layer: Layer) -> dict[str, str]:
    """By role: the code that reads the weight."""
    expressions = {}
    for name, weight in layer.weights.items():
        dictionary = "p" if weight.trainable else "b"
        expressions[name.rpartition(".")[2]] = f'{dictionary}["{flat_name(name)}"]'
    return expressions


def _source(graph: Graph, sites: list[CallSite], ops: Ops) -> str:
    variables = _variables(graph)
    last_use = {variable: site for site in sites for variable in site.inputs}
    lines = [
        f"def forward(self, {variables[graph.input.name]}):",
        "p, b, training = self._parameters, self._buffers, self.training",
    ]
    if any(layer.op.name == "dropout" for layer in graph):
        lines.append("dropping = training and self.dropping")
    for site in sites:
        line = f"{site.output} = {ops[site.op.name](site)}"
        # Deleted after the last use, as nested modules do: else every activation lives until the
        # end of the pass.
        unique_inputs = dict.fromkeys(site.inputs)
        unused = [variable for variable in unique_inputs if last_use.get(variable) is site]
        if unused:
            line += f"; del {', '.join(unused)}"
        lines.append(f"{line}  # {site.layer.name}")
    lines.append(f"return {variables[graph.output]}")
    return "\n    ".join(lines) + "\n"


def _compile(name: str, source: str, namespace: dict[str, Any]) -> Any:
    filename = f"<{name}, generated>"
    # For tracebacks.
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace["forward"]


def _python_function(builtin: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.compiler.disable` can mark a Python function; it cannot mark a builtin."""
    return lambda *arguments: builtin(*arguments)


def _compact(module: Lowered, layer: Layer) -> None:
    tensors = module.canonical()
    weight_input = tensors[f"{layer.name}.weight_input"]
    weight_hidden = tensors[f"{layer.name}.weight_hidden"]
    bias = tensors[f"{layer.name}.bias"]
    zero_bias = module.get_buffer(flat_name(f"{layer.name}.zero_bias"))
    if not torch.backends.cudnn.is_acceptable(weight_input):
        return
    weights = [weight_input, weight_hidden, bias, zero_bias]
    mode = get_cudnn_mode(_cudnn_name(layer))
    units = weight_hidden.shape[1]
    features = weight_input.shape[1]
    with torch.no_grad():
        torch._cudnn_rnn_flatten_weight(
            weights, len(weights), features, mode, units, 0, 1, True, False
        )


def _cudnn_name(layer: Layer) -> str:
    if layer.op.name == "lstm":
        return "LSTM"
    return "RNN_RELU" if layer.op.settings()["relu"] else "RNN_TANH"
