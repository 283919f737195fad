"""Networks as one writes them by hand for TensorFlow, channels last: from `tf.nn`, and from the layers of Keras.

Each takes weights in the order in which our graphs define them. Nothing of our lowering is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import layers

Arrays = Iterator[Any]
STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
EPSILON, KEPT = 1e-5, 0.9


class Convolution(tf.Module):
    """Without a bias, then normalised by the fused operation."""

    def __init__(self, arrays: Arrays, stride: int) -> None:
        super().__init__()
        kernel, scale, bias, mean, variance = (next(arrays) for _ in range(5))
        self.kernel = tf.Variable(kernel.transpose(2, 3, 1, 0))
        self.scale, self.bias = tf.Variable(scale), tf.Variable(bias)
        self.mean, self.variance = (
            tf.Variable(mean, trainable=False),
            tf.Variable(variance, trainable=False),
        )
        side = kernel.shape[2] // 2
        even = [[0, 0], [side, side], [side, side], [0, 0]]
        self.stride, self.padding = stride, "SAME" if stride == 1 else even if side else "VALID"

    def __call__(self, x: Any, training: bool) -> Any:
        x = tf.nn.conv2d(x, self.kernel, self.stride, self.padding)
        fused = tf.compat.v1.nn.fused_batch_norm
        own = (x, self.scale, self.bias, self.mean, self.variance, EPSILON)
        if not training:
            return fused(*own, is_training=False)[0]
        x, mean, variance = fused(*own, is_training=True, exponential_avg_factor=1 - KEPT)
        self.mean.assign(mean)
        self.variance.assign(variance)
        return x


class Bottleneck(tf.Module):
    def __init__(self, arrays: Arrays, stride: int, shortcut: bool) -> None:
        super().__init__()
        self.parts = [Convolution(arrays, hop) for hop in (1, stride, 1)]
        self.shortcut = Convolution(arrays, stride) if shortcut else None

    def __call__(self, x: Any, training: bool) -> Any:
        y = tf.nn.relu(self.parts[0](x, training))
        y = tf.nn.relu(self.parts[1](y, training))
        y = self.parts[2](y, training)
        return tf.nn.relu(y + (self.shortcut(x, training) if self.shortcut else x))


class Resnet50(tf.Module):
    def __init__(self, arrays: Arrays) -> None:
        super().__init__()
        self.stem = Convolution(arrays, 2)
        self.blocks = [
            Bottleneck(arrays, stride if block == 0 else 1, block == 0)
            for _, count, stride in STAGES
            for block in range(count)
        ]
        self.kernel, self.bias = tf.Variable(next(arrays).T), tf.Variable(next(arrays))

    def __call__(self, x: Any, training: bool) -> Any:
        x = tf.nn.relu(self.stem(x, training))
        x = tf.nn.max_pool2d(
            tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID"
        )  # none is below 0
        for block in self.blocks:
            x = block(x, training)
        return tf.matmul(tf.reduce_mean(x, (1, 2)), self.kernel) + self.bias


class Cell(tf.Module):
    """As the first version's BasicLSTMCell: one product of input and state side by side."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.concat([next(arrays).T, next(arrays).T], 0))
        self.bias = tf.Variable(next(arrays))

    def __call__(self, x: Any, hidden: Any, memory: Any) -> tuple[Any, Any]:
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x, hidden], 1), self.kernel), self.bias)
        entry, forget, candidate, leave = tf.split(gates, 4, 1)
        memory = tf.sigmoid(forget) * memory + tf.sigmoid(entry) * tf.tanh(candidate)
        return tf.sigmoid(leave) * tf.tanh(memory), memory


class PtbLstm(tf.Module):
    """Unrolled, as TensorFlow's own model of Penn Treebank was."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__()
        self.table = tf.Variable(next(arrays))
        self.cells = [Cell(arrays), Cell(arrays)]
        self.kernel, self.bias = tf.Variable(next(arrays).T), tf.Variable(next(arrays))

    def __call__(self, tokens: Any, training: bool) -> Any:
        steps = tf.unstack(tf.nn.embedding_lookup(self.table, tokens), axis=1)
        for cell in self.cells:
            hidden = memory = tf.zeros_like(steps[0])
            outputs = []
            for x in steps:
                hidden, memory = cell(x, hidden, memory)
                outputs.append(hidden)
            steps = outputs
        x = tf.reshape(tf.stack(steps, 1), (-1, hidden.shape[1]))
        output = tf.matmul(x, self.kernel) + self.bias
        return tf.reshape(output, (*tokens.shape, output.shape[1]))


def by_hand(name: str, arrays: Arrays) -> Any:
    return {"resnet50": Resnet50, "ptb-lstm-small": PtbLstm}[name](arrays)


class Layers:
    """Keras makes the weights of a layer when it is first called; here it gets ours at once, in their order."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def __call__(self, layer: Any, x: Any) -> Any:
        x = layer(x)
        for weight in layer.weights:
            array = next(self.arrays)
            turned = array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T
            weight.assign(turned if weight.path.endswith("kernel") else array)
        return x


def keras_resnet50(arrays: Arrays) -> Any:
    put = Layers(arrays)

    def convolution(x: Any, filters: int, size: int, stride: int) -> Any:
        if size > 1 and stride > 1:
            x = layers.ZeroPadding2D(size // 2)(x)
        padding = "same" if stride == 1 else "valid"
        x = put(layers.Conv2D(filters, size, stride, padding, use_bias=False), x)
        return put(layers.BatchNormalization(momentum=KEPT, epsilon=EPSILON), x)

    image = keras.Input((224, 224, 3))
    x = layers.ReLU()(convolution(image, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for filters, count, first in STAGES:
        for block in range(count):
            stride = first if block == 0 else 1
            y = layers.ReLU()(convolution(x, filters, 1, 1))
            y = layers.ReLU()(convolution(y, filters, 3, stride))
            y = convolution(y, 4 * filters, 1, 1)
            x = layers.ReLU()(
                layers.Add()([y, convolution(x, 4 * filters, 1, stride) if block == 0 else x])
            )
    return keras.Model(image, put(layers.Dense(1000), layers.GlobalAveragePooling2D()(x)))


def keras_ptb_lstm(arrays: Arrays) -> Any:
    put = Layers(arrays)
    tokens = keras.Input((20,), dtype="int32")
    x = put(layers.Embedding(10_000, 200), tokens)
    for _ in range(2):
        x = put(layers.LSTM(200, return_sequences=True), x)
    return keras.Model(tokens, put(layers.Dense(10_000), x))


def by_keras(name: str, arrays: Arrays) -> Any:
    return {"resnet50": keras_resnet50, "ptb-lstm-small": keras_ptb_lstm}[name](arrays)


def plain(weight: Any) -> Any:
    """TensorFlow's own variable, which Keras wraps."""
    return weight.value if isinstance(weight, keras.Variable) else weight


REFERENCES: dict[str, Callable[[str, Arrays], Any]] = {"tf.nn": by_hand, "keras": by_keras}
