"""One function per op of layer: the line of PyTorch code that computes it. A new op is one entry in `OPS`.

Only PyTorch's own builtins are called: their Python wrappers in `nn.functional` cost the host time on every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from steptime.frameworks.pytorch.ops import images, sequences, simple
from steptime.frameworks.pytorch.ops.call_site import CallSite, own_name

NAMES: dict[str, Any] = {
    "attend": torch._C._nn.scaled_dot_product_attention,
    "average_pool": torch._C._nn.avg_pool2d,
    "batch_norm": torch.batch_norm,
    "cat": torch.cat,
    "conv2d": torch.conv2d,
    "dropout": torch.dropout,
    "embedding": torch.embedding,
    "gelu": torch._C._nn.gelu,
    "gru": torch.gru,
    "infinity": float("inf"),
    "layer_norm": torch.layer_norm,
    "linear": torch._C._nn.linear,
    "lstm": torch.lstm,
    "max_pool": torch.max_pool2d,
    "narrow": torch.narrow,
    "pad": torch.constant_pad_nd,
    "relu": torch.relu,
    "relu_": torch.relu_,
    "rnn_relu": torch.rnn_relu,
    "rnn_tanh": torch.rnn_tanh,
    "sigmoid": torch.sigmoid,
    "split": torch.split_with_sizes,
    "tanh": torch.tanh,
}
"""What generated code may call."""

RECURRENT = ("gru", "lstm", "rnn_relu", "rnn_tanh")
"""Those that a compiler cannot see through."""

_SIMPLE = (
    "add",
    "concat",
    "dense",
    "dropout",
    "flatten",
    "gelu",
    "layer_norm",
    "relu",
    "scale",
    "sigmoid",
    "tanh",
)
_IMAGES = (
    "average_pool",
    "batch_norm",
    "conv",
    "global_average_pool",
    "lrn",
    "max_pool",
    "pad_channels",
)
_SEQUENCES = (
    "attention",
    "embedding",
    "gru",
    "lstm",
    "positions",
    "rnn",
    "tied_dense",
    "tied_embedding",
)

OPS: dict[str, Callable[[CallSite], str]] = {
    "slice": simple.slice_,
    **{name: getattr(simple, name) for name in _SIMPLE},
    **{name: getattr(images, name) for name in _IMAGES},
    **{name: getattr(sequences, name) for name in _SEQUENCES},
}

__all__ = ["OPS", "NAMES", "RECURRENT", "CallSite", "own_name"]
