"""Ops on images: convolutions and pools with exactly the padding of the graph, normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import (
    Array,
    LoweringContext,
    Weights,
    add_bias,
    at_least_fp32,
)
from steptime.graph import Layer
from steptime.graph.ops import Pads
from steptime.graph.windows import cells, covering_pads

NO_PADS = ((0, 0), (0, 0))


def batch_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    weights = {name: at_least_fp32(weight) for name, weight in weights.items()}
    has_fused_op = len(x.shape) == layout.IMAGE and x.dtype != tf.float64
    if has_fused_op and not _slow_if_fused(context, x):
        return _fused_norm(layer, weights, context, x)
    return _plain_norm(layer, weights, context, x)


def _slow_if_fused(context: LoweringContext, x: Array) -> bool:
    """Graphs of inference fuse the normalisation with the convolution before it. For a single image
    oneDNN then computes both 10 to 20 times as slowly (ResNet-50, TensorFlow 2.21, AVX2). Keras
    does not use the fused operation there either."""
    if context.training or context.xla or tf.executing_eagerly():
        return False
    return bool(x.shape[0] == 1)


def _fused_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """The raw operation, because its wrapper `tf.nn.fused_batch_norm` silently raises small
    epsilons. Its moving variance is the unbiased one."""
    op: Any = layer.op
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=weights["weight"],
        offset=weights["bias"],
        mean=weights["running_mean"],
        variance=weights["running_variance"],
        epsilon=op.epsilon,
        exponential_avg_factor=op.momentum,
        is_training=context.training,
    )
    if context.training:
        context.statistics[f"{layer.name}.running_mean"] = mean
        context.statistics[f"{layer.name}.running_variance"] = variance
    return y


def _plain_norm(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    values = at_least_fp32(x)
    channels = layout.axis(x, 0)
    rank = len(x.shape)
    mean = weights["running_mean"]
    variance = weights["running_variance"]
    if context.training:
        other_axes = [axis for axis in range(rank) if axis != channels]
        mean, variance = tf.nn.moments(values, other_axes)
        count = tf.cast(tf.size(x) // mean.shape[0], mean.dtype)
        unbiased = variance * (count / tf.maximum(count - 1, 1))
        for name, value in (("running_mean", mean), ("running_variance", unbiased)):
            moved = (1 - op.momentum) * weights[name] + op.momentum * value
            context.statistics[f"{layer.name}.{name}"] = moved
    shape = [-1 if axis == channels else 1 for axis in range(rank)]
    per_channel = (mean, variance, weights["bias"], weights["weight"])
    broadcast = [tf.reshape(value, shape) for value in per_channel]
    return tf.cast(tf.nn.batch_normalization(values, *broadcast, op.epsilon), x.dtype)


def conv(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    kernel = weights["weight"]
    undilated = op.dilation == (1, 1)
    if context.native_convolutions or (op.groups == 1 and undilated):
        y = _native_conv(op, kernel, x)
    elif undilated:
        y = _grouped_conv(op, kernel, x)
    else:
        y = _dilated_conv(op, kernel, x)
    return add_bias(y, weights["bias"]) if op.bias else y


def _native_conv(op: Any, kernel: Array, x: Array) -> Array:
    height, width = op.kernel
    window = ((height - 1) * op.dilation[0] + 1, (width - 1) * op.dilation[1] + 1)
    padding = _padding(op.padding, x, window, op.stride)
    return tf.nn.conv2d(x, kernel, op.stride, padding, dilations=op.dilation)


def _grouped_conv(op: Any, kernel: Array, x: Array) -> Array:
    padding = _padding(op.padding, x, op.kernel, op.stride)
    if op.groups == x.shape[3] and op.stride[0] == op.stride[1]:
        by_channel = tf.reshape(kernel, (*op.kernel, op.groups, op.filters // op.groups))
        return tf.nn.depthwise_conv2d(x, by_channel, (1, *op.stride, 1), padding)
    return _conv_by_group(op.groups, kernel, x, op.stride, padding)


def _conv_by_group(groups: int, kernel: Array, x: Array, stride: Any, padding: Any) -> Array:
    inputs = tf.split(x, groups, 3)
    kernels = tf.split(kernel, groups, 3)
    outputs = []
    for group_input, group_kernel in zip(inputs, kernels, strict=True):
        outputs.append(tf.nn.conv2d(group_input, group_kernel, stride, padding))
    return tf.concat(outputs, 3)


def _dilated_conv(op: Any, kernel: Array, x: Array) -> Array:
    """The cells that one window sees become neighbours in a batch of smaller images. The stride is
    applied afterwards."""
    pads = []
    crops = []
    for size, (before, after), dilation in zip(x.shape[1:3], op.padding, op.dilation, strict=True):
        # The smaller images must have equal sizes.
        rest = -(size + before + after) % dilation
        pads.append((before, after + rest))
        crops.append((0, rest))
    small = tf.space_to_batch_nd(x, op.dilation, pads)
    y = _conv_by_group(op.groups, kernel, small, 1, "VALID")
    joined = tf.batch_to_space(y, op.dilation, crops)
    return joined[:, :: op.stride[0], :: op.stride[1]]


def max_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    padding = _padding(covering_pads(layer), x, op.kernel, op.stride)
    # XLA's pool knows only named paddings. Elsewhere the gradient of an unnamed padding costs twice
    # as much as `tf.pad` and a pool with a named one.
    if (context.xla or context.training) and not isinstance(padding, str):
        # Rows that no window reaches are not cut off: that made the training of ResNet-50 in XLA
        # 5 % slower on images of an odd size.
        pads = [tuple(map(max, *pair)) for pair in zip(op.padding, padding[1:3], strict=True)]
        x = tf.pad(x, [(0, 0), *pads, (0, 0)], constant_values=float("-inf"))
        padding = "VALID"
    return tf.nn.max_pool2d(x, op.kernel, op.stride, padding)


def average_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """TensorFlow's pool does not count padding either, but it knows only named paddings."""
    op: Any = layer.op
    padding = _padding(covering_pads(layer), x, op.kernel, op.stride)
    values = at_least_fp32(x)
    if isinstance(padding, str):
        return tf.cast(tf.nn.avg_pool2d(values, op.kernel, op.stride, padding), x.dtype)
    mean = tf.nn.avg_pool2d(tf.pad(values, padding), op.kernel, op.stride, "VALID")
    # The mean counted the padding as cells, so it is scaled to the true number of cells.
    share = np.prod(op.kernel) / np.array(cells(layer))
    share = share[None, :, :, None].astype(mean.dtype.as_numpy_dtype)
    return tf.cast(mean * share, x.dtype)


def global_average_pool(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array
) -> Array:
    return tf.cast(tf.reduce_mean(at_least_fp32(x), (1, 2)), x.dtype)


def lrn(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """TensorFlow's operation adds up the squares where the graph takes their mean. It has no fp64
    and, on the CPU, no bf16."""
    op: Any = layer.op
    radius = op.size // 2
    share = op.alpha / op.size
    if x.dtype != tf.float64:
        values = at_least_fp32(x)
        y = tf.nn.local_response_normalization(values, radius, op.k, share, op.beta)
        return tf.cast(y, x.dtype)
    squares = tf.pad(x * x, [(0, 0), (0, 0), (0, 0), (radius, radius)])
    channels = x.shape[3]
    shifted = [squares[..., first : first + channels] for first in range(op.size)]
    return x * (op.k + share * tf.add_n(shifted)) ** -op.beta


def pad_channels(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    return tf.pad(x, [(0, 0), (0, 0), (0, 0), (op.before, op.after)])


OPS: dict[str, Callable[..., Array]] = {
    "average_pool": average_pool,
    "batch_norm": batch_norm,
    "conv": conv,
    "global_average_pool": global_average_pool,
    "lrn": lrn,
    "max_pool": max_pool,
    "pad_channels": pad_channels,
}


def _padding(pads: Pads, x: Array, window: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """TensorFlow's name of these pads, if they have one; otherwise the pads of all axes. oneDNN
    computes gradients only for named paddings."""
    if pads == NO_PADS:
        return "VALID"
    same = []
    for size, reach, step in zip(x.shape[1:3], window, stride, strict=True):
        outputs = -(-size // step)
        total = max((outputs - 1) * step + reach - size, 0)
        same.append((total // 2, total - total // 2))
    return "SAME" if tuple(same) == pads else [(0, 0), *pads, (0, 0)]
