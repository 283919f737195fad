"""Networks as one writes them by hand for JAX: dictionaries of weights, channels last, a scan.

Each network has `weights`, which takes arrays in the order in which our graphs define them, and is
a function of weights, moving statistics and batch. Nothing of our lowering is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

# (width, blocks, stride of the first block)
STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
CONVOLUTIONS = {"nhwc": ("NHWC", "HWIO", "NHWC"), "nchw": ("NCHW", "OIHW", "NCHW")}


class Resnet50:
    """`layout`: nhwc is usual in JAX; nchw shows what it costs."""

    def __init__(self, layout: str) -> None:
        self.dimensions = CONVOLUTIONS[layout]
        self.last = layout == "nhwc"

    def weights(self, arrays: Iterator[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Trainable weights and moving statistics, both by the name of the layer."""
        trainable = {}
        moving = {}
        for name, _, _ in [("stem", 7, 2), *self._convolutions()]:
            kernel, scale, bias, mean, variance = (next(arrays) for _ in range(5))
            if self.last:
                kernel = kernel.transpose(2, 3, 1, 0)
            trainable[name] = {"kernel": kernel, "scale": scale, "bias": bias}
            moving[name] = {"mean": mean, "variance": variance}
        trainable["head"] = {"kernel": next(arrays).T, "bias": next(arrays)}
        return trainable, moving

    def _convolutions(self) -> Iterator[tuple[str, int, int]]:
        """Name, size and stride, block by block."""
        for stage, (_, blocks, first) in enumerate(STAGES):
            for block in range(blocks):
                stride = first if block == 0 else 1
                yield f"{stage}.{block}.a", 1, 1
                yield f"{stage}.{block}.b", 3, stride
                yield f"{stage}.{block}.c", 1, 1
                if block == 0:
                    yield f"{stage}.{block}.shortcut", 1, stride

    def __call__(
        self, trainable: Any, moving: Any, images: Any, *, training: bool = True
    ) -> tuple[Any, Any]:
        moved: dict[str, Any] = {}
        settings = {"stem": (7, 2)}
        for name, size, stride in self._convolutions():
            settings[name] = (size, stride)

        def conv_norm(name: str, x: Any) -> Any:
            size, stride = settings[name]
            weights = trainable[name]
            pads = [(size // 2, size // 2)] * 2
            strides = (stride, stride)
            x = lax.conv_general_dilated(
                x, weights["kernel"], strides, pads, dimension_numbers=self.dimensions
            )
            x, moved[name] = self._normalise(x, weights, moving[name], training)
            return x

        x = jax.nn.relu(conv_norm("stem", images))
        x = self._max_pool(x)
        for stage, (_, blocks, _) in enumerate(STAGES):
            for block in range(blocks):
                name = f"{stage}.{block}"
                y = jax.nn.relu(conv_norm(f"{name}.a", x))
                y = jax.nn.relu(conv_norm(f"{name}.b", y))
                y = conv_norm(f"{name}.c", y)
                shortcut = conv_norm(f"{name}.shortcut", x) if block == 0 else x
                x = jax.nn.relu(y + shortcut)
        x = x.mean((1, 2) if self.last else (2, 3))
        head = trainable["head"]
        return x @ head["kernel"] + head["bias"], moved

    def _normalise(self, x: Any, weights: Any, moving: Any, training: bool) -> tuple[Any, Any]:
        """As in Flax: the mean, and the mean of squares less its square."""
        axes = (0, 1, 2) if self.last else (0, 2, 3)
        mean = moving["mean"]
        variance = moving["variance"]
        moved = moving
        if training:
            mean = x.mean(axes)
            variance = jnp.maximum(lax.square(x).mean(axes) - lax.square(mean), 0)
            # The moving average takes the unbiased variance, as in PyTorch.
            count = x.size // mean.size
            unbiased = variance * count / (count - 1)
            moved = {
                "mean": 0.9 * moving["mean"] + 0.1 * mean,
                "variance": 0.9 * moving["variance"] + 0.1 * unbiased,
            }
        scale = weights["scale"] * lax.rsqrt(variance + 1e-5)
        offset = x - self._per_channel(mean)
        return offset * self._per_channel(scale) + self._per_channel(weights["bias"]), moved

    def _per_channel(self, values: Any) -> Any:
        return values if self.last else values[:, None, None]

    def _max_pool(self, x: Any) -> Any:
        pads = self._for_all_axes(((1, 1), (1, 1)), (0, 0))
        window = self._for_all_axes((3, 3), 1)
        strides = self._for_all_axes((2, 2), 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, pads)

    def _for_all_axes(self, pair: Any, rest: Any) -> tuple[Any, ...]:
        return (rest, *pair, rest) if self.last else (rest, rest, *pair)


class PtbLstm:
    """Two layers of 200, one scan each, with both products of a cell inside it as in Flax."""

    def weights(self, arrays: Iterator[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        trainable: dict[str, Any] = {"embedding": next(arrays)}
        for cell in ("first", "second"):
            weights = {"input": next(arrays).T, "hidden": next(arrays).T, "bias": next(arrays)}
            trainable[cell] = weights
        trainable["head"] = {"kernel": next(arrays).T, "bias": next(arrays)}
        return trainable, {}

    def __call__(
        self, trainable: Any, moving: Any, tokens: Any, *, training: bool = True
    ) -> tuple[Any, Any]:
        x = trainable["embedding"][tokens].swapaxes(0, 1)
        for cell in ("first", "second"):
            x = self._scan(trainable[cell], x)
        head = trainable["head"]
        return x.swapaxes(0, 1) @ head["kernel"] + head["bias"], moving

    def _scan(self, weights: Any, x: Any) -> Any:
        def move(state: Any, now: Any) -> Any:
            hidden, cell = state
            gates = now @ weights["input"] + hidden @ weights["hidden"] + weights["bias"]
            input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4, axis=-1)
            remembered = jax.nn.sigmoid(forget_gate) * cell
            cell = remembered + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
            hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
            return (hidden, cell), hidden

        zeros = jnp.zeros((x.shape[1], weights["hidden"].shape[0]))
        # `scan` loops over the first axis, which is time.
        _, outputs = lax.scan(move, (zeros, zeros), x)
        return outputs
