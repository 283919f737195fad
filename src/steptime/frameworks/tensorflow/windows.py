"""Windows that slide over images: convolutions and pools, with exactly the graph's padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from steptime.frameworks.tensorflow.context import Array, LoweringContext, shifted, wide
from steptime.graph import Layer
from steptime.graph.ops import Pads
from steptime.graph.windows import cells, covering_pads

Weights = dict[str, Array]  # of one layer, by part
NONE = ((0, 0), (0, 0))


def conv(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    kernel = weights["weight"]
    if context.native or (op.groups == 1 and op.dilation == (1, 1)):
        reach = tuple(
            (size - 1) * spread + 1 for size, spread in zip(op.kernel, op.dilation, strict=True)
        )
        y = tf.nn.conv2d(
            x,
            kernel,
            op.stride,
            _named(op.padding, x, reach, op.stride),
            dilations=op.dilation,
        )
    elif op.dilation == (1, 1):
        y = _grouped(op, kernel, x)
    else:
        y = _dilated(op, kernel, x)
    return shifted(y, weights["bias"]) if op.bias else y


def _grouped(op: Any, kernel: Array, x: Array) -> Array:
    padding = _named(op.padding, x, op.kernel, op.stride)
    if op.groups == x.shape[3] and op.stride[0] == op.stride[1]:
        by_channel = tf.reshape(kernel, (*op.kernel, op.groups, op.filters // op.groups))
        return tf.nn.depthwise_conv2d(x, by_channel, (1, *op.stride, 1), padding)
    pairs = zip(tf.split(x, op.groups, 3), tf.split(kernel, op.groups, 3), strict=True)
    return tf.concat([tf.nn.conv2d(part, own, op.stride, padding) for part, own in pairs], 3)


def _dilated(op: Any, kernel: Array, x: Array) -> Array:
    """The cells that one window sees become neighbours in a batch of smaller images. Strides are taken afterwards."""
    rest = [
        -(size + before + after) % spread
        for size, (before, after), spread in zip(x.shape[1:3], op.padding, op.dilation, strict=True)
    ]
    pads = [(before, after + more) for (before, after), more in zip(op.padding, rest, strict=True)]
    apart = tf.space_to_batch_nd(x, op.dilation, pads)
    pairs = zip(tf.split(apart, op.groups, 3), tf.split(kernel, op.groups, 3), strict=True)
    y = tf.concat([tf.nn.conv2d(part, own, 1, "VALID") for part, own in pairs], 3)
    whole = tf.batch_to_space(y, op.dilation, [(0, more) for more in rest])
    return whole[:, :: op.stride[0], :: op.stride[1]]


def max_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    op: Any = layer.op
    padding = _named(covering_pads(layer), x, op.kernel, op.stride)
    # XLA's pool knows only the names; elsewhere a gradient without a name costs twice as much as padding and one with.
    # Rows that no window reaches are not cut off: ResNet-50's training in XLA is 5 % slower on images of an odd size.
    if (context.xla or context.training) and not isinstance(padding, str):
        whole = [tuple(map(max, *pads)) for pads in zip(op.padding, padding[1:3], strict=True)]
        x, padding = tf.pad(x, [(0, 0), *whole, (0, 0)], constant_values=float("-inf")), "VALID"
    return tf.nn.max_pool2d(x, op.kernel, op.stride, padding)


def average_pool(layer: Layer, weights: Weights, context: LoweringContext, x: Array) -> Array:
    """TensorFlow's own counts no padding either, but knows only the names."""
    op: Any = layer.op
    padding = _named(covering_pads(layer), x, op.kernel, op.stride)
    if isinstance(padding, str):
        return tf.cast(tf.nn.avg_pool2d(wide(x), op.kernel, op.stride, padding), x.dtype)
    mean = tf.nn.avg_pool2d(tf.pad(wide(x), padding), op.kernel, op.stride, "VALID")
    share = np.prod(op.kernel) / np.array(cells(layer))
    return tf.cast(mean * share[None, :, :, None].astype(mean.dtype.as_numpy_dtype), x.dtype)


def global_average_pool(
    layer: Layer, weights: Weights, context: LoweringContext, x: Array
) -> Array:
    return tf.cast(tf.reduce_mean(wide(x), (1, 2)), x.dtype)


def _named(pads: Pads, x: Array, reach: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """By TensorFlow's name where these pads have one: oneDNN computes the gradients of no others. Else for all axes."""
    if pads == NONE:
        return "VALID"
    same = []
    for size, window, hop in zip(x.shape[1:3], reach, stride, strict=True):
        total = max((-(-size // hop) - 1) * hop + window - size, 0)
        same.append((total // 2, total - total // 2))
    return "SAME" if tuple(same) == pads else [(0, 0), *pads, (0, 0)]
