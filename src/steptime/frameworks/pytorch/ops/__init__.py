"""One function per op: the PyTorch expression that computes it. A new op is one entry in `OPS`.

Only builtins are called: their Python wrappers in `nn.functional` cost host time in every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from steptime.frameworks.pytorch.ops import images, sequences, simple
from steptime.frameworks.pytorch.ops.call_site import CallSite, flat_name

FUNCTIONS: dict[str, Any] = {
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
"""What generated code may use."""

RECURRENT = ("gru", "lstm", "rnn_relu", "rnn_tanh")
"""Those that a compiler cannot trace."""

OPS: dict[str, Callable[[CallSite], str]] = {
    "add": simple.add,
    "attention": sequences.attention,
    "average_pool": images.average_pool,
    "batch_norm": images.batch_norm,
    "concat": simple.concat,
    "conv": images.conv,
    "dense": simple.dense,
    "dropout": simple.dropout,
    "embedding": sequences.embedding,
    "flatten": simple.flatten,
    "gelu": simple.gelu,
    "global_average_pool": images.global_average_pool,
    "gru": sequences.gru,
    "layer_norm": simple.layer_norm,
    "lrn": images.lrn,
    "lstm": sequences.lstm,
    "max_pool": images.max_pool,
    "pad_channels": images.pad_channels,
    "positions": sequences.positions,
    "relu": simple.relu,
    "rnn": sequences.rnn,
    "scale": simple.scale,
    "sigmoid": simple.sigmoid,
    "slice": simple.slice_,
    "tanh": simple.tanh,
    "tied_dense": sequences.tied_dense,
    "tied_embedding": sequences.embedding,
}

__all__ = ["FUNCTIONS", "OPS", "RECURRENT", "CallSite", "flat_name"]
