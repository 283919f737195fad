"""The builder: names, shapes, and sentences for what does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.core.errors import WrongGraph
from steptime.graph import Net, Tensor, ops


def test_net_numbers_layers_by_op() -> None:
    net = Net("tiny")
    x = net.dense(net.relu(net.dense(net.input(4), 3)), 2)
    assert [layer.name for layer in net.graph(x)] == ["input", "dense1", "relu1", "dense2"]


def test_net_names_layer_and_both_shapes_in_a_mismatch() -> None:
    net = Net("tiny")
    x = net.input(4)
    with pytest.raises(
        WrongGraph, match=r"tiny: layer 'add1' \(add\) after 'input' \(4,\) and 'dense1' \(3,\)"
    ):
        net.add(x, net.dense(x, 3))


def test_net_conv_rejects_a_vector() -> None:
    net = Net("tiny")
    with pytest.raises(
        WrongGraph,
        match=r"layer 'conv1' .* needs an image \(channels, height, width\), got .*\(4,\)",
    ):
        net.conv(net.input(4), 8, 3)


def test_net_rejects_a_window_larger_than_the_image() -> None:
    net = Net("tiny")
    with pytest.raises(
        WrongGraph, match=r"'max_pool1' .* window of 5 is larger than the padded input 4"
    ):
        net.max_pool(net.input(1, 4, 4), 5)


def test_net_conv_rejects_channels_that_do_not_split_into_groups() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match="3 channels and 4 filters do not split into 2 groups"):
        net.conv(net.input(3, 4, 4), 4, 1, groups=2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kernel": 2, "stride": (0, 1)}, "stride of at least 1"),
        ({"kernel": 2, "padding": 2}, "entirely in its padding"),
        ({"kernel": 3, "padding": -1}, "padding of at least 0"),
        (
            {"kernel": 2, "padding": "sane"},
            "after 'input' .* must be a number or 'same', found 'sane'",
        ),
    ],
)
def test_net_max_pool_rejects_impossible_windows(
    settings: dict[str, object], sentence: str
) -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match=sentence):
        net.max_pool(net.input(1, 4, 4), **settings)


def test_net_dense_rejects_zero_units() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match=r"layer 'dense1' .* would have the shape \(0,\)"):
        net.dense(net.input(4), 0)


def test_net_dropout_rejects_a_rate_of_one() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match="below 1, found 1"):
        net.dropout(net.input(4), 1.0)


def test_net_dense_rejects_tokens() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match="put an embedding between"):
        net.dense(net.tokens(5, 10), 3)


def test_net_embedding_rejects_floats() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match=r"'embedding1' .* needs tokens"):
        net.embedding(net.input(4), 10, 3)


def test_net_embedding_needs_a_row_for_every_token() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match="has 9 rows for tokens below 10"):
        net.embedding(net.tokens(5, 10), 9, 3)


def test_net_rejects_a_duplicate_name() -> None:
    net = Net("tiny")
    x = net.dense(net.input(4), 3, name="twin")
    with pytest.raises(WrongGraph, match="two layers are called 'twin'"):
        net.dense(x, 3, name="twin")


def test_net_rejects_a_name_that_is_no_identifier() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match="letters, digits and underscores"):
        net.dense(net.input(4), 3, name="the layer")


def test_net_rejects_an_input_that_is_no_tensor() -> None:
    net = Net("tiny")
    with pytest.raises(
        WrongGraph, match="'dense1' must come from a layer of this network, found 784"
    ):
        net.dense(784, 10)  # type: ignore[arg-type]


def test_net_rejects_a_tensor_of_another_network() -> None:
    with pytest.raises(WrongGraph, match="must come from a layer of this network"):
        Net("tiny").relu(Tensor("elsewhere", (4,)))


def test_net_rejects_too_few_inputs() -> None:
    net = Net("tiny")
    with pytest.raises(WrongGraph, match="takes 2 inputs, found 1"):
        net.layer(ops.Add(), net.input(4))


def test_net_graph_rejects_an_unused_layer() -> None:
    net = Net("tiny")
    x = net.input(4)
    net.dense(x, 3)
    with pytest.raises(WrongGraph, match=r"layer 'dense1' \(3,\) leads nowhere"):
        net.graph(net.dense(x, 2))


def test_net_graph_rejects_a_missing_output() -> None:
    net = Net("tiny")
    net.input(4)
    with pytest.raises(
        WrongGraph, match="the output must come from a layer of this network, found None"
    ):
        net.graph(None)  # type: ignore[arg-type]


REFUSED: dict[str, tuple[Callable[[Net], Tensor], str]] = {
    "an even window of channels": (
        lambda net: net.lrn(net.input(4, 2, 2), 4),
        "'lrn1' .* needs an odd size, found 4",
    ),
    "fewer channels": (
        lambda net: net.pad_channels(net.input(4, 2, 2), -1, 0),
        "counts of at least 0, found -1 and 0",
    ),
    "a cut beyond the end": (
        lambda net: net.slice(net.input(4), 2, 5),
        "cannot cut 2 to 5 out of 4",
    ),
    "tensors of two heights": (
        lambda net: net.concat(x := net.input(4, 3, 2), net.max_pool(x, 2)),
        r"differ in axis 0 alone, got \(4, 3, 2\), \(4, 1, 1\)",
    ),
    "an axis too many": (
        lambda net: net.concat(x := net.input(4), x, axis=1),
        r"no axis 1 in the shape \(4,\)",
    ),
    "an odd width of positions": (
        lambda net: net.positions(net.input(5, 3), learned=False),
        "an even number of features",
    ),
    "heads that do not fit": (
        lambda net: net.attention(x := net.input(5, 6), x, x, heads=4),
        "cannot split 6 features into 4 heads",
    ),
    "an image in time": (
        lambda net: net.gru(net.input(4, 2, 2), 3),
        r"needs a sequence \(time, features\)",
    ),
    "a vector in time": (
        lambda net: net.rnn(net.input(4), 3),
        r"needs a sequence \(time, features\)",
    ),
    "an embedding that is none": (
        lambda net: net.tied_dense(x := net.dense(net.input(5, 4), 4), x),
        r"needs an embedding with a weight of \(1, 4\) to tie to, found dense \(4, 4\)",
    ),
    "an embedding of another width": (
        lambda net: net.tied_dense(net.dense(x := net.embedding(net.tokens(5, 9), 9, 4), 3), x),
        r"weight of \(9, 3\) to tie to, found embedding \(9, 4\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_net_rejects_inputs_that_do_not_fit_the_op(case: str) -> None:
    write, sentence = REFUSED[case]
    with pytest.raises(WrongGraph, match=sentence):
        write(Net("tiny"))


def test_net_concat_joins_along_its_axis() -> None:
    net = Net("tiny")
    x = net.input(4, 3, 2)
    assert net.concat(x, net.pad_channels(x, 1, 2), x).shape == (15, 3, 2)
    assert net.concat(x, x, axis=-1).shape == (4, 3, 4)


def test_net_slice_of_tokens_is_tokens() -> None:
    net = Net("tiny")
    x = net.embedding(net.slice(net.tokens(7, 9), 3, 7), 9, 5)
    assert x.shape == (4, 5)


def test_net_attention_has_the_shape_of_its_query() -> None:
    net = Net("tiny")
    tokens = net.tokens(7, 9)
    query, keys = (net.embedding(net.slice(tokens, *ends), 9, 6) for ends in ((0, 3), (3, 7)))
    assert net.attention(query, keys, keys, heads=3).shape == (3, 6)
    with pytest.raises(WrongGraph, match="needs query, keys and values that go together"):
        net.attention(query, keys, keys, heads=3, causal=True)


def test_tied_weight_is_counted_once_under_the_name_of_its_owner() -> None:
    net = Net("tiny")
    tokens = net.tokens(7, 9)
    table = net.embedding(net.slice(tokens, 0, 3), 9, 5)
    graph = net.graph(net.tied_dense(net.tied_embedding(net.slice(tokens, 3, 7), table), table))
    assert graph.trainable_parameters == 45
    assert (
        list(graph["tied_dense1"].weights)
        == list(graph["tied_embedding1"].weights)
        == ["embedding1.weight"]
    )


sizes = st.integers(1, 40)


@settings(max_examples=100, deadline=None)
@given(size=sizes, kernel=st.integers(1, 9), stride=st.integers(1, 5), dilation=st.integers(1, 3))
def test_net_conv_same_padding_gives_one_output_per_stride(
    size: int, kernel: int, stride: int, dilation: int
) -> None:
    net = Net("tiny")
    x = net.conv(
        net.input(1, size, size), 1, kernel, stride=stride, dilation=dilation, padding="same"
    )
    op = net.graph(x)["conv1"].op
    assert isinstance(op, ops.Conv)
    (before, after), _ = op.padding
    reach = (kernel - 1) * dilation + 1
    assert x.shape[1] == -(-size // stride)
    assert after - before in (0, 1)  # the odd cell goes after the image
    # Not a cell more than needed.
    assert before + after == max((x.shape[1] - 1) * stride + reach - size, 0)


@settings(max_examples=100, deadline=None)
@given(
    size=sizes,
    kernel=st.integers(1, 7),
    stride=st.integers(1, 5),
    ceil=st.booleans(),
    data=st.data(),
)
def test_net_average_pool_counts_windows_that_start_inside(
    size: int, kernel: int, stride: int, ceil: bool, data: st.DataObject
) -> None:
    padding = data.draw(st.integers(0, kernel - 1))
    kernel = min(kernel, size + 2 * padding)
    padding = min(padding, kernel - 1)
    net = Net("tiny")
    x = net.average_pool(
        net.input(1, size, size), kernel, stride=stride, padding=padding, ceil=ceil
    )
    starts = range(-padding, size, stride)  # where rounding up may begin a window
    complete = [start for start in starts if start + kernel <= size + padding]
    partial = [start for start in starts if start < size + padding - kernel + stride]
    assert x.shape[1] == len(partial if ceil else complete)


@pytest.mark.parametrize("units", [2.5, "many", 0])
def test_net_dense_rejects_units_that_are_no_whole_number(units: object) -> None:
    net = Net("odd")
    with pytest.raises(WrongGraph, match="every size must be a whole number of at least 1"):
        net.dense(net.input(4), units)  # type: ignore[arg-type]
