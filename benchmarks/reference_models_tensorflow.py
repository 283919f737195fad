"""Networks as one writes them by hand for TensorFlow, channels last: with `tf.nn`, and with Keras.

Each takes weights in the order in which our graphs define them. Nothing of our lowering is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import layers

Arrays = Iterator[Any]
# (width, blocks, stride of the first block)
STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
EPSILON = 1e-5
# The share of a moving average that stays in each step.
MOMENTUM = 0.9


class Convolution(tf.Module):
    """Without a bias, followed by the fused normalisation."""

    def __init__(self, arrays: Arrays, stride: int) -> None:
        super().__init__()
        kernel, scale, bias, mean, variance = (next(arrays) for _ in range(5))
        self.kernel = tf.Variable(kernel.transpose(2, 3, 1, 0))
        self.scale = tf.Variable(scale)
        self.bias = tf.Variable(bias)
        self.mean = tf.Variable(mean, trainable=False)
        self.variance = tf.Variable(variance, trainable=False)
        self.stride = stride
        self.padding = _padding(kernel.shape[2] // 2, stride)

    def __call__(self, x: Any, training: bool) -> Any:
        x = tf.nn.conv2d(x, self.kernel, self.stride, self.padding)
        normalise = tf.compat.v1.nn.fused_batch_norm
        inputs = (x, self.scale, self.bias, self.mean, self.variance, EPSILON)
        if not training:
            return normalise(*inputs, is_training=False)[0]
        factor = 1 - MOMENTUM
        x, mean, variance = normalise(*inputs, is_training=True, exponential_avg_factor=factor)
        self.mean.assign(mean)
        self.variance.assign(variance)
        return x


def _padding(side: int, stride: int) -> Any:
    if stride == 1:
        return "SAME"
    return [[0, 0], [side, side], [side, side], [0, 0]] if side else "VALID"


class Bottleneck(tf.Module):
    def __init__(self, arrays: Arrays, stride: int, shortcut: bool) -> None:
        super().__init__()
        self.convolutions = [Convolution(arrays, each) for each in (1, stride, 1)]
        self.shortcut = Convolution(arrays, stride) if shortcut else None

    def __call__(self, x: Any, training: bool) -> Any:
        y = tf.nn.relu(self.convolutions[0](x, training))
        y = tf.nn.relu(self.convolutions[1](y, training))
        y = self.convolutions[2](y, training)
        shortcut = self.shortcut(x, training) if self.shortcut else x
        return tf.nn.relu(y + shortcut)


class Resnet50(tf.Module):
    def __init__(self, arrays: Arrays) -> None:
        super().__init__()
        self.stem = Convolution(arrays, 2)
        self.blocks = []
        for _, count, first_stride in STAGES:
            for block in range(count):
                first = block == 0
                self.blocks.append(Bottleneck(arrays, first_stride if first else 1, first))
        self.kernel = tf.Variable(next(arrays).T)
        self.bias = tf.Variable(next(arrays))

    def __call__(self, x: Any, training: bool) -> Any:
        x = tf.nn.relu(self.stem(x, training))
        # Padding with zeros: no value is below zero.
        x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        x = tf.nn.max_pool2d(x, 3, 2, "VALID")
        for block in self.blocks:
            x = block(x, training)
        return tf.matmul(tf.reduce_mean(x, (1, 2)), self.kernel) + self.bias


class Cell(tf.Module):
    """As BasicLSTMCell of TensorFlow 1: one product of the joined input and state."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.concat([next(arrays).T, next(arrays).T], 0))
        self.bias = tf.Variable(next(arrays))

    def __call__(self, x: Any, hidden: Any, cell: Any) -> tuple[Any, Any]:
        product = tf.matmul(tf.concat([x, hidden], 1), self.kernel)
        gates = tf.nn.bias_add(product, self.bias)
        input_gate, forget_gate, candidate, output_gate = tf.split(gates, 4, 1)
        cell = tf.sigmoid(forget_gate) * cell + tf.sigmoid(input_gate) * tf.tanh(candidate)
        return tf.sigmoid(output_gate) * tf.tanh(cell), cell


class PtbLstm(tf.Module):
    """Unrolled, as in TensorFlow's own model of Penn Treebank."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__()
        self.table = tf.Variable(next(arrays))
        self.cells = [Cell(arrays), Cell(arrays)]
        self.kernel = tf.Variable(next(arrays).T)
        self.bias = tf.Variable(next(arrays))

    def __call__(self, tokens: Any, training: bool) -> Any:
        steps = tf.unstack(tf.nn.embedding_lookup(self.table, tokens), axis=1)
        for cell in self.cells:
            hidden = state = tf.zeros_like(steps[0])
            outputs = []
            for x in steps:
                hidden, state = cell(x, hidden, state)
                outputs.append(hidden)
            steps = outputs
        x = tf.reshape(tf.stack(steps, 1), (-1, hidden.shape[1]))
        output = tf.matmul(x, self.kernel) + self.bias
        return tf.reshape(output, (*tokens.shape, output.shape[1]))


def with_tf_nn(name: str, arrays: Arrays) -> Any:
    networks = {"resnet50": Resnet50, "ptb-lstm-small": PtbLstm}
    return networks[name](arrays)


class WeightedLayers:
    """Applies a layer, which makes its weights at the first call, and sets them to ours."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def __call__(self, layer: Any, x: Any) -> Any:
        x = layer(x)
        for weight in layer.weights:
            array = next(self.arrays)
            if weight.path.endswith("kernel"):
                array = array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T
            weight.assign(array)
        return x


def keras_resnet50(arrays: Arrays) -> Any:
    apply = WeightedLayers(arrays)

    def convolution(x: Any, filters: int, size: int, stride: int) -> Any:
        # "same" of Keras would pad unevenly.
        if size > 1 and stride > 1:
            x = layers.ZeroPadding2D(size // 2)(x)
        padding = "same" if stride == 1 else "valid"
        x = apply(layers.Conv2D(filters, size, stride, padding, use_bias=False), x)
        return apply(layers.BatchNormalization(momentum=MOMENTUM, epsilon=EPSILON), x)

    image = keras.Input((224, 224, 3))
    x = layers.ReLU()(convolution(image, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for filters, count, first_stride in STAGES:
        for block in range(count):
            stride = first_stride if block == 0 else 1
            y = layers.ReLU()(convolution(x, filters, 1, 1))
            y = layers.ReLU()(convolution(y, filters, 3, stride))
            y = convolution(y, 4 * filters, 1, 1)
            shortcut = convolution(x, 4 * filters, 1, stride) if block == 0 else x
            x = layers.ReLU()(layers.Add()([y, shortcut]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, apply(layers.Dense(1000), x))


def keras_ptb_lstm(arrays: Arrays) -> Any:
    apply = WeightedLayers(arrays)
    tokens = keras.Input((20,), dtype="int32")
    x = apply(layers.Embedding(10_000, 200), tokens)
    for _ in range(2):
        x = apply(layers.LSTM(200, return_sequences=True), x)
    return keras.Model(tokens, apply(layers.Dense(10_000), x))


def with_keras(name: str, arrays: Arrays) -> Any:
    networks = {"resnet50": keras_resnet50, "ptb-lstm-small": keras_ptb_lstm}
    return networks[name](arrays)


def tensorflow_variable(weight: Any) -> Any:
    """The variable that Keras wraps."""
    return weight.value if isinstance(weight, keras.Variable) else weight


REFERENCES: dict[str, Callable[[str, Arrays], Any]] = {"tf.nn": with_tf_nn, "keras": with_keras}
