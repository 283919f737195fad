"""Counts, costs, fingerprint and JSON of a graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime import networks
from steptime.core.errors import WrongGraph
from steptime.graph import Graph, Initializer, Net, Tensor


def build(write: Callable[[Net], Tensor]) -> Graph:
    net = Net("tiny")
    return net.graph(write(net))


def branches(net: Net) -> Tensor:
    """Every op that an image network needs."""
    x = net.conv(net.input(3, 9, 9), 4, 3, padding="same", bias=False)
    left = net.relu(net.batch_norm(x))
    right = net.sigmoid(net.conv(x, 4, 1, groups=2))
    x = net.average_pool(net.max_pool(net.add(left, right), 2, ceil=True), 2, stride=1)
    x = net.dropout(net.tanh(net.dense(net.flatten(x), 5)), 0.3)
    return net.dense(x, 2, initializer=Initializer("truncated_normal", 0.1))


def test_graph_distinguishes_trainable_and_stored_parameters() -> None:
    graph = build(lambda net: net.batch_norm(net.dense(net.input(4), 3)))
    assert (graph.trainable_parameters, graph.stored_parameters) == (4 * 3 + 3 + 6, 4 * 3 + 3 + 12)


def test_graph_weights_have_canonical_names() -> None:
    graph = build(lambda net: net.lstm(net.embedding(net.tokens(5, 10), 10, 3), 2, name="memory"))
    names = ["embedding1.weight", "memory.weight_input", "memory.weight_hidden", "memory.bias"]
    assert list(graph.weights) == names


def test_layer_flops_of_the_first_layer_have_no_input_gradient() -> None:
    graph = build(lambda net: net.dense(net.relu(net.dense(net.flatten(net.input(1, 2, 2)), 3)), 2))
    assert graph.layer_flops(graph["dense1"]) == (2 * 4 * 3, 2 * 4 * 3)
    assert graph.layer_flops(graph["dense2"]) == (2 * 3 * 2, 2 * 2 * 3 * 2)


@pytest.mark.parametrize(("kernel", "share"), [(1, 1.0), (3, 0.25), ((1, 3), 0.5), (5, 0.09)])
def test_least_flops_of_a_convolution_are_those_of_winograd(kernel: Any, share: float) -> None:
    graph = build(lambda net: net.conv(net.input(3, 9, 9), 4, kernel))
    assert graph.least_flops(backward=False) == pytest.approx(share * graph.forward_flops)


def test_least_flops_of_causal_attention_are_those_below_the_diagonal() -> None:
    def write(net: Net) -> Tensor:
        x = net.embedding(net.tokens(7, 10), 10, 4)
        return net.attention(x, x, x, heads=2, causal=True)

    graph = build(write)
    assert graph.least_flops(backward=False) == pytest.approx(graph.forward_flops * 28 / 49)


def test_least_flops_of_dense_layers_are_all_of_them() -> None:
    graph = build(lambda net: net.dense(net.dense(net.input(4), 3), 2))
    assert graph.least_flops(backward=False) == graph.forward_flops
    assert graph.least_flops(backward=True) == graph.forward_flops + graph.backward_flops


def test_forward_bytes_are_inputs_weights_and_outputs_once() -> None:
    graph = build(lambda net: net.dense(net.input(4), 3))
    assert graph.forward_bytes(batch=2, item=4) == 4 * (2 * 4 + (12 + 3) + 2 * 3)


def test_forward_bytes_of_an_embedding_count_only_rows_that_are_read() -> None:
    graph = build(lambda net: net.embedding(net.tokens(5, 1000), 1000, 3))
    assert graph.forward_bytes(batch=2, item=1) == 2 * 5 + 2 * 5 * 3 + 2 * 5 * 3


def test_tied_input_has_its_weight_read_but_not_its_values() -> None:
    graph = build(translation)
    assert (
        graph["tied_dense1"].value_inputs == ("attention1",)
        and graph["attention1"].value_inputs == graph["attention1"].inputs
    )
    assert (
        graph.layer_bytes(graph["tied_dense1"], batch=2, item=1) == 2 * 4 * 4 + 10 * 4 + 2 * 4 * 10
    )
    assert (
        graph.layer_bytes(graph["tied_embedding1"], batch=2, item=1)
        == 2 * 4 + 2 * 4 * 4 + 2 * 4 * 4
    )


sizes = st.integers(1, 5)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_conv_flops_equal_a_count_over_its_outputs(data: st.DataObject) -> None:
    groups, channels, filters = (
        data.draw(st.integers(1, 2), label) for label in ("groups", "channels", "filters")
    )
    height, width, stride, dilation = (data.draw(st.integers(1, 3)) for _ in range(4))
    kernel = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
    height, width = height + (kernel[0] - 1) * dilation, width + (kernel[1] - 1) * dilation
    graph = build(
        lambda net: net.conv(
            net.conv(net.input(1, height, width), channels * groups, 1),
            filters * groups,
            kernel,
            stride=stride,
            dilation=dilation,
            groups=groups,
        )
    )
    _, rows, columns = graph[graph.output].shape
    count = 0
    for _ in product(range(groups), range(filters), range(rows), range(columns)):
        for _ in product(range(channels), range(kernel[0]), range(kernel[1])):
            count += 2
    assert graph.layer_flops(graph[graph.output]) == (count, 2 * count)


@settings(max_examples=40, deadline=None)
@given(shape=st.lists(sizes, min_size=1, max_size=3), units=sizes)
def test_dense_flops_equal_a_count_over_its_outputs(shape: list[int], units: int) -> None:
    graph = build(lambda net: net.dense(net.input(*shape), units))
    count = sum(
        2 * shape[-1] for _ in product(*(range(size) for size in graph[graph.output].shape))
    )
    assert (graph.forward_flops, graph.backward_flops) == (count, count)


@settings(max_examples=40, deadline=None)
@given(
    op=st.sampled_from([("rnn", 1), ("gru", 3), ("lstm", 4)]),
    shape=st.tuples(sizes, sizes, sizes, st.booleans()),
)
def test_recurrent_flops_equal_a_count_over_time(
    op: tuple[str, int], shape: tuple[int, int, int, bool]
) -> None:
    steps, features, units, first = shape

    def write(net: Net) -> Tensor:
        x = net.input(steps, features)
        make: Callable[..., Tensor] = getattr(net, op[0])
        return make(x if first else net.dense(x, features), units, name="memory")

    graph, forward, backward = build(write), 0, 0
    for step, _gate, _unit in product(range(steps), range(op[1]), range(units)):
        forward += 2 * features + 2 * units
        backward += 2 * features + 2 * units  # of the weights
        backward += (
            2 * units if step > 0 else 0
        )  # to the state before; the very first is a constant
        backward += 0 if first else 2 * features
    assert graph.layer_flops(graph["memory"]) == (forward, backward)


@settings(max_examples=20, deadline=None)
@given(size=st.integers(2, 6))
def test_flops_of_layers_without_products_are_zero(size: int) -> None:
    graph = build(
        lambda net: net.global_average_pool(net.max_pool(net.tanh(net.input(2, size, size)), 2))
    )
    assert (graph.forward_flops, graph.backward_flops, graph.trainable_parameters) == (0, 0, 0)


def shuffle(graph: Graph, random: Any) -> Graph:
    """The same network as another author would write it.

    It has other names, independent branches in another order, and additions with sides swapped."""
    names = {
        layer.name: f"layer_{number}"
        for number, layer in enumerate(random.sample(graph.layers, len(graph.layers)))
    }
    remaining = list(graph.to_dict()["layers"])
    done: set[str] = set()
    entries = []
    while remaining:
        ready = [entry for entry in remaining if set(entry["inputs"]) <= done]
        entry = random.choice(ready)
        remaining.remove(entry)
        done.add(entry["name"])
        inputs = [names[name] for name in entry["inputs"]]
        if entry["op"] == "add" and random.random() < 0.5:
            inputs.reverse()
        entries.append({**entry, "name": names[entry["name"]], "inputs": inputs})
    return Graph.from_dict({"name": "other", "output": names[graph.output], "layers": entries})


@settings(max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_fingerprint_ignores_names_and_order(random: Any) -> None:
    graph = build(branches)
    assert shuffle(graph, random).fingerprint == graph.fingerprint


def test_fingerprint_ignores_initializers() -> None:
    half = Initializer("constant", 0.5)
    plain = build(lambda net: net.dense(net.input(4), 3))
    other = build(lambda net: net.dense(net.input(4), 3, initializer=half))
    assert plain.fingerprint == other.fingerprint


def test_fingerprint_keeps_its_value_although_settings_were_renamed() -> None:
    # Results in existing stores refer to networks by these values.
    assert networks.load("resnet56-cifar").graph.fingerprint == "5b5a2a40bf998bfd"
    assert networks.load("googlenet").graph.fingerprint == "e599198561f7ed7b"


def language_model(net: Net) -> Tensor:
    return net.lstm(net.embedding(net.tokens(5, 10), 10, 3), 2)


def joined(net: Net) -> Tensor:
    x = net.lrn(net.input(4, 3, 3))
    return net.slice(net.gelu(net.scale(net.concat(x, net.pad_channels(x, 1, 2)), 0.5)), 1, 3)


def translation(net: Net) -> Tensor:
    tokens = net.tokens(7, 10)
    table = net.embedding(net.slice(tokens, 0, 3), 10, 4)
    x = net.layer_norm(net.positions(net.gru(net.rnn(table, 4), 4)))
    y = net.tied_embedding(net.slice(tokens, 3, 7), table)
    return net.tied_dense(net.attention(y, x, x, heads=2, scale=1.0), table)


def change(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (change(value[0]), *value[1:])
    return value * 2 if isinstance(value, float) else value + 1


STRUCTURE = [
    pytest.param(write, layer.name, setting, id=f"{layer.name}-{setting}")
    for write in (branches, language_model, joined, translation)
    for layer in build(write)
    for setting in layer.op.settings()
    if setting not in layer.op.not_structure
]


@pytest.mark.parametrize(("write", "name", "setting"), STRUCTURE)
def test_fingerprint_changes_with_every_structural_setting(
    write: Callable[[Net], Tensor], name: str, setting: str
) -> None:
    graph = build(write)
    op = graph[name].op
    other = replace(graph[name], op=replace(op, **{setting: change(getattr(op, setting))}))
    layers = tuple(other if layer.name == name else layer for layer in graph)
    assert replace(graph, layers=layers).fingerprint != graph.fingerprint


def test_fingerprint_distinguishes_a_shared_layer_from_two_equal_ones() -> None:
    def shared(net: Net) -> Tensor:
        x = net.dense(net.input(4), 3)
        return net.add(x, x)

    def copied(net: Net) -> Tensor:
        x = net.input(4)
        return net.add(net.dense(x, 3), net.dense(x, 3))

    assert build(shared).fingerprint != build(copied).fingerprint


def test_fingerprint_depends_on_which_layer_is_shared() -> None:
    def write(pick: int) -> Callable[[Net], Tensor]:
        def inner(net: Net) -> Tensor:
            x = net.input(4)
            twins = [net.dense(x, 3), net.dense(x, 3)]
            return net.add(
                net.add(net.relu(twins[0]), net.tanh(twins[1])), net.sigmoid(twins[pick])
            )

        return inner

    assert build(write(0)).fingerprint != build(write(1)).fingerprint


def test_graph_survives_a_json_round_trip() -> None:
    graph = build(branches)
    assert Graph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"op": "convv"}, "layer 'dense1': No layer op 'convv'. Did you mean 'conv'"),
        ({"inputs": ["inptu"]}, "layer 'dense1': No earlier layer 'inptu'. Did you mean 'input'"),
        ({"settings": {"unit": 3}}, "settings do not fit a dense"),
        ({"name": "input"}, "every layer needs its own name"),
    ],
)
def test_graph_from_dict_explains_a_wrong_entry(change: dict[str, Any], sentence: str) -> None:
    document = build(lambda net: net.dense(net.input(4), 3)).to_dict()
    document["layers"][1] |= change
    with pytest.raises(WrongGraph, match=sentence):
        Graph.from_dict(document)


def test_graph_from_dict_names_a_missing_key() -> None:
    with pytest.raises(WrongGraph, match="lacks 'layers'"):
        Graph.from_dict({"name": "tiny", "output": "x"})


def test_graph_from_dict_rejects_a_fingerprint_that_does_not_match() -> None:
    document = build(lambda net: net.dense(net.input(4), 3)).to_dict()
    document["layers"][1]["settings"]["units"] = 4
    with pytest.raises(WrongGraph, match="changed by hand"):
        Graph.from_dict(document)


def test_graph_from_dict_rejects_two_inputs() -> None:
    document = build(lambda net: net.dense(net.input(4), 3)).to_dict()
    document["layers"].insert(0, {**document["layers"][0], "name": "second"})
    with pytest.raises(WrongGraph, match="one input, found 2: second, input"):
        Graph.from_dict(document)
