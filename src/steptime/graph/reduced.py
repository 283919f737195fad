"""A small copy of a network: the same kinds of layers in the same company, fewer and narrower.

What holds for the copy's semantics holds for the network's, because a lowering treats layers by
their op, their settings and their neighbours, and never by their number or width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from steptime.core.errors import WrongGraph
from steptime.graph.graph import Graph, assemble
from steptime.graph.layer import Layer, connect
from steptime.graph.op import Op
from steptime.graph.ops import Conv, Input

# Settings that are divided without a remainder, because layers must go together.
WIDTHS = ("filters", "units", "width")
OFFSETS = ("before", "after", "start", "stop")
# Nothing depends on these, so they are rounded.
VOCABULARY = "vocabulary"
LARGEST_FACTOR = 8
LEAST_WIDTH = 4

Signature = tuple[Any, ...]


def reduced(graph: Graph) -> Graph:
    """The graph itself if it has no repeats and cannot be narrowed."""
    short = remove_repeats(graph)
    for factor in range(LARGEST_FACTOR, 1, -1):
        try:
            return narrow(short, factor)
        except (_Indivisible, WrongGraph):
            continue
    return short


def remove_repeats(graph: Graph) -> Graph:
    """Remove repeated blocks as long as a layer of every signature stays, and no new one comes."""
    layers = list(graph.layers)
    kinds = set(_signatures(layers))
    while (shorter := _remove_largest_repeat(layers, graph.output, kinds)) is not None:
        layers = shorter
    return assemble(graph.name, layers, graph.output)


def narrow(graph: Graph, factor: int) -> Graph:
    """Divide the width of every layer; the input's shape and all windows stay."""
    layers: dict[str, Layer] = {}
    for layer in graph:
        inputs = [layers[name] for name in layer.inputs]
        op = _narrow_op(layer, inputs, factor, is_output=layer.name == graph.output)
        layers[layer.name] = connect(op, inputs, name=layer.name, network=graph.name)
    return assemble(graph.name, list(layers.values()), graph.output)


class _Indivisible(Exception):
    """A width that the factor does not divide, or would make too small."""


def _narrow_op(layer: Layer, inputs: Sequence[Layer], factor: int, *, is_output: bool) -> Op:
    op = layer.op
    changes: dict[str, int] = {}
    reads_tokens = bool(inputs) and inputs[0].vocabulary > 0
    for name, value in op.settings().items():
        is_class_count = name == "units" and (is_output or op.tied_input is not None)
        if name == VOCABULARY or is_class_count:
            # At least two, unless it says that there are no tokens.
            changes[name] = max(2, value // factor) if value else 0
        elif name in WIDTHS:
            changes[name] = _divide(value, factor, least=LEAST_WIDTH)
        # A slice of tokens cuts time, not width.
        elif name in OFFSETS and not reads_tokens:
            changes[name] = _divide(value, factor)
    if isinstance(op, Conv) and op.groups > 1 and op.groups == layer.input_shapes[0][0]:
        changes["groups"] = inputs[0].shape[0]
    return replace(op, **changes)


def _divide(value: int, factor: int, least: int = 0) -> int:
    quotient, remainder = divmod(value, factor)
    if remainder or quotient < least:
        raise _Indivisible
    return quotient


def _remove_largest_repeat(
    layers: Sequence[Layer], output: str, kinds: set[Signature]
) -> list[Layer] | None:
    for block in sorted(_blocks(layers, output), key=lambda block: -block.members.bit_count()):
        shorter = _without_block(layers, block)
        if set(_signatures(shorter)) == kinds:
            return shorter
    return None


class _Block(NamedTuple):
    entry: int  # the layer before the block
    last: int  # the layer that the rest of the network reads
    members: int  # a bit for each layer


def _blocks(layers: Sequence[Layer], output: str) -> list[_Block]:
    """Between two layers of the same op and shape, so that the rest fits without the block."""
    positions = _positions(layers)
    ancestors = _ancestors(layers, positions)
    users = _users(layers, positions)
    blocks = []
    for last, layer in enumerate(layers):
        if layer.name == output:
            continue
        for entry in _bits(ancestors[last]):
            other = layers[entry]
            if other.op.name == layer.op.name and other.shape == layer.shape:
                members = _members(entry, last, ancestors, users)
                if members:
                    blocks.append(_Block(entry, last, members))
    return blocks


def _members(entry: int, last: int, ancestors: Sequence[int], users: Sequence[int]) -> int:
    """The layers between entry and last that nothing else reads; 0 if they are no block."""
    members = (ancestors[last] | 1 << last) & ~(ancestors[entry] | 1 << entry)
    while True:
        outside = 0
        for index in _bits(members & ~(1 << last)):
            if users[index] & ~members:
                outside |= 1 << index
        if not outside:
            break
        members &= ~outside
    # Something after the block must read it, and something of the block must read the entry.
    return members if users[entry] & members and members >> last & 1 else 0


def _without_block(layers: Sequence[Layer], block: _Block) -> list[Layer]:
    entry = layers[block.entry]
    removed = layers[block.last].name
    rest = []
    for index, layer in enumerate(layers):
        if block.members >> index & 1:
            continue
        names = tuple(entry.name if name == removed else name for name in layer.inputs)
        rest.append(replace(layer, inputs=names))
    return rest


def _signatures(layers: Sequence[Layer]) -> list[Signature]:
    """What a lowering may look at: op, settings without widths, and the ops beside it."""
    positions = _positions(layers)
    users = _users(layers, positions)
    signatures = []
    for index, layer in enumerate(layers):
        before = tuple(layers[positions[name]].op.name for name in layer.inputs)
        after = tuple(sorted({layers[user].op.name for user in _bits(users[index])}))
        signatures.append((layer.op.name, _kind(layer), before, after))
    return signatures


def _kind(layer: Layer) -> Signature:
    op = layer.op
    if isinstance(op, Input):
        return (len(op.dims), op.vocabulary > 0)
    ignored = (*WIDTHS, *OFFSETS, VOCABULARY, *op.not_structure)
    settings = []
    for field in fields(op):
        if field.name not in ignored:
            settings.append((field.name, getattr(op, field.name)))
    return tuple(settings)


def _positions(layers: Sequence[Layer]) -> dict[str, int]:
    return {layer.name: index for index, layer in enumerate(layers)}


def _ancestors(layers: Sequence[Layer], positions: dict[str, int]) -> list[int]:
    """As bits, of each layer."""
    ancestors: list[int] = []
    for layer in layers:
        bits = 0
        for name in layer.inputs:
            bits |= ancestors[positions[name]] | 1 << positions[name]
        ancestors.append(bits)
    return ancestors


def _users(layers: Sequence[Layer], positions: dict[str, int]) -> list[int]:
    users = [0] * len(layers)
    for index, layer in enumerate(layers):
        for name in layer.inputs:
            users[positions[name]] |= 1 << index
    return users


def _bits(number: int) -> list[int]:
    indices = []
    while number:
        lowest = number & -number
        indices.append(lowest.bit_length() - 1)
        number ^= lowest
    return indices
