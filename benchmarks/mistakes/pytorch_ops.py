"""PyTorch, class 4: ops that compute something else."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network
from benchmarks.mistakes.pytorch_state import wrong_text

from steptime.frameworks.pytorch.ops import FUNCTIONS, OPS

SUITE = Suite("pytorch", "eager")


def symmetric_padding(original: Any, site: Any) -> str:
    """The larger side of an odd padding on both sides, and the last window dropped."""
    op = site.op
    (top, bottom), (left, right) = op.padding
    if top == bottom and left == right:
        text: str = original(site)
        return text
    weights = f"{site.weights['weight']}, {site.weights.get('bias')}"
    x = f"pad({site.inputs[0]}, ({right}, {left}, {bottom}, {top}), 0.0)"
    return f"conv2d({x}, {weights}, {op.stride}, (0, 0), {op.dilation}, {op.groups})"


@SUITE(4, own_network("strided"))
def same_padding_before_image(patch: Patcher) -> None:
    """The larger half of an odd padding goes before the image."""
    patch.entry(OPS, "conv", symmetric_padding)


@SUITE(4, own_network("grouped"))
def dilation_ignored(patch: Patcher) -> None:
    """Convolutions ignore their dilation and are padded so that the shape fits."""

    def conv2d(f: Any, x: Any, w: Any, b: Any, stride: Any, pad: Any, dil: Any, groups: Any) -> Any:
        smaller = tuple(p - (d - 1) * (w.shape[2] // 2) for p, d in zip(pad, dil, strict=True))
        return f(x, w, b, stride, smaller, (1, 1), groups)

    patch.entry(FUNCTIONS, "conv2d", conv2d)


@SUITE(4, own_network("grouped"))
def groups_interleaved(patch: Patcher) -> None:
    """Grouped convolutions take every second channel for a group instead of neighbours."""

    def conv2d(f: Any, x: Any, *rest: Any) -> Any:
        groups = rest[-1]
        if groups > 1:
            x = torch.cat([x[:, start::groups] for start in range(groups)], 1)
        return f(x, *rest)

    patch.entry(FUNCTIONS, "conv2d", conv2d)


@SUITE(4, "resnet56-cifar")
def shortcut_takes_second_cells(patch: Patcher) -> None:
    """The shortcut takes the odd rows and columns where it averages or takes the even ones."""

    def average_pool(f: Any, x: Any, *rest: Any) -> Any:
        return f(torch.roll(x, (-1, -1), (2, 3)), *rest)

    patch.entry(FUNCTIONS, "average_pool", average_pool)


@SUITE(4, "inception-v3")
def average_pool_counts_padding(patch: Patcher) -> None:
    """Average pools count their padding as cells."""

    def average_pool(f: Any, x: Any, window: Any, stride: Any, pad: Any, *rest: Any) -> Any:
        if rest[1:] == (False,):
            return f(x, window, stride, pad, rest[0], True)
        return f(x, window, stride, pad, *rest)

    patch.entry(FUNCTIONS, "average_pool", average_pool)


SUITE.add(
    4,
    "googlenet",
    wrong_text("lrn", ".mul_(0.0001)", ".mul_(0.0005)"),
    "LRN does not divide alpha by the size",
    name="lrn_alpha_not_divided",
)
SUITE.add(
    4,
    "googlenet",
    wrong_text("lrn", ".add_(1.0)", ".add_(2.0)"),
    "LRN has k = 2 for 1",
    name="lrn_other_k",
)
SUITE.add(
    4,
    "googlenet",
    wrong_text("lrn", ".pow(0.75)", ".pow(0.5)"),
    "LRN has beta 0.5 for 0.75",
    name="lrn_other_beta",
)
SUITE.add(
    4,
    own_network("decoder"),
    wrong_text("gelu", '"tanh"', '"none"'),
    "gelu by the error function for the one by tanh",
    name="gelu_erf_for_tanh",
)
SUITE.add(
    4,
    own_network("bell"),
    wrong_text("gelu", '"none"', '"tanh"'),
    "gelu by tanh for the one by the error function",
    name="gelu_tanh_for_erf",
)


@SUITE(4, "googlenet")
def concat_reversed(patch: Patcher) -> None:
    """Branches are joined in reverse order."""

    def cat(f: Any, tensors: Any, axis: int) -> Any:
        return f(tuple(reversed(tensors)), axis)

    patch.entry(FUNCTIONS, "cat", cat)


@SUITE(4, "lenet5")
def flatten_with_channels_last(patch: Patcher) -> None:
    """Images are flattened with channels last."""

    def flatten(original: Any, site: Any) -> str:
        return f"{site.inputs[0]}.permute(0, 2, 3, 1).flatten(1)"

    patch.entry(OPS, "flatten", flatten)


@SUITE(4, "ptb-lstm-small")
def lstm_gates_in_other_order(patch: Patcher) -> None:
    """The LSTM takes its gates in the order input, candidate, forget, output."""

    def reorder(weight: Any) -> Any:
        entry, forget, candidate, exit_ = weight.chunk(4)
        return torch.cat([entry, candidate, forget, exit_])

    def lstm(f: Any, x: Any, state: Any, weights: Any, *rest: Any) -> Any:
        return f(x, state, tuple(map(reorder, weights)), *rest)

    patch.entry(FUNCTIONS, "lstm", lstm)


@SUITE(4, "transformer-base")
def attention_without_scale(patch: Patcher) -> None:
    """Attention does not scale its scores."""

    def attend(f: Any, *arguments: Any, scale: float) -> Any:
        return f(*arguments, scale=1.0)

    patch.entry(FUNCTIONS, "attend", attend)


@SUITE(4, "transformer-base")
def attention_sees_all(patch: Patcher) -> None:
    """Causal attention sees later positions."""

    def attend(
        f: Any, q: Any, k: Any, v: Any, mask: Any, rate: Any, causal: Any, **scale: Any
    ) -> Any:
        return f(q, k, v, mask, rate, False, **scale)

    patch.entry(FUNCTIONS, "attend", attend)


@SUITE(4, "transformer-base")
def causal_mask_off_by_one(patch: Patcher) -> None:
    """Causal attention sees one position too many."""

    def attend(
        f: Any, q: Any, k: Any, v: Any, mask: Any, rate: Any, causal: Any, **scale: Any
    ) -> Any:
        if causal:
            length = q.shape[-2]
            mask = torch.ones(length, length, dtype=torch.bool).tril(1)
        return f(q, k, v, mask, rate, False, **scale)

    patch.entry(FUNCTIONS, "attend", attend)


@SUITE(4, "transformer-base")
def heads_not_transposed(patch: Patcher) -> None:
    """The results of heads are joined without moving time before them."""

    def attention(original: Any, site: Any) -> str:
        text: str = original(site)
        head, _, tail = text.rpartition(".transpose(1, 2)")
        return head + tail

    patch.entry(OPS, "attention", attention)


@SUITE(4, own_network("grouped"))
def pool_rounded_down(patch: Patcher) -> None:
    """A pool that rounds up drops its last window, and repeats the one before."""

    def max_pool(f: Any, x: Any, window: Any, stride: Any, pad: Any, dil: Any, ceil: Any) -> Any:
        y = f(x, window, stride, pad, dil, False)
        return torch.nn.functional.pad(y, (0, 1, 0, 1), mode="replicate") if ceil else y

    patch.entry(FUNCTIONS, "max_pool", max_pool)


@SUITE(4, "resnet56-cifar")
def relu6_for_relu(patch: Patcher) -> None:
    """ReLU is clipped at 6."""
    for name in ("relu", "relu_"):
        patch.entry(FUNCTIONS, name, lambda f, x: f(x).clamp(max=6.0))


@SUITE(4, "cifar10-cnn")
def leaky_relu(patch: Patcher) -> None:
    """ReLU lets one percent of negative values through."""
    for name in ("relu", "relu_"):
        patch.entry(FUNCTIONS, name, lambda f, x: torch.nn.functional.leaky_relu(x, 0.01))


@SUITE(4, "resnet56-cifar")
def pad_channels_at_end(patch: Patcher) -> None:
    """Channels of zeros are added after the image's, none before."""

    def pad(f: Any, x: Any, pads: Any, value: float) -> Any:
        if len(pads) == 6:
            pads = (*pads[:4], 0, pads[4] + pads[5])
        return f(x, pads, value)

    patch.entry(FUNCTIONS, "pad", pad)
