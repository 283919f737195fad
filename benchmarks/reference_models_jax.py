"""Networks as one writes them by hand in JAX: nested dictionaries of weights, channels last, a scan over time.

Each network has `weights`, which takes arrays in the order in which our graphs define them, and a function of weights,
moving statistics and batch. Nothing of our lowering is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
CONVOLUTIONS = {"nhwc": ("NHWC", "HWIO", "NHWC"), "nchw": ("NCHW", "OIHW", "NCHW")}


class Resnet50:
    """`layout` nhwc is JAX's own; nchw is there to see what it costs."""

    def __init__(self, layout: str) -> None:
        self.dimensions, self.last = CONVOLUTIONS[layout], layout == "nhwc"

    def weights(self, arrays: Iterator[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Trainable ones, and moving statistics, both by name of the layer."""
        trained, moving = {}, {}
        for name, _, _ in [("stem", 7, 2), *self._convolutions()]:
            kernel, scale, bias, mean, variance = (next(arrays) for _ in range(5))
            kernel = kernel.transpose(2, 3, 1, 0) if self.last else kernel
            trained[name] = {"kernel": kernel, "scale": scale, "bias": bias}
            moving[name] = {"mean": mean, "variance": variance}
        trained["head"] = {"kernel": next(arrays).T, "bias": next(arrays)}
        return trained, moving

    def _convolutions(self) -> Iterator[tuple[str, int, int]]:
        """Name, size and stride, block by block."""
        for stage, (_, blocks, first) in enumerate(STAGES):
            for block in range(blocks):
                stride = first if block == 0 else 1
                for part, size, hop in (("a", 1, 1), ("b", 3, stride), ("c", 1, 1)):
                    yield f"{stage}.{block}.{part}", size, hop
                if block == 0:
                    yield f"{stage}.{block}.shortcut", 1, stride

    def __call__(
        self, trained: Any, moving: Any, images: Any, *, training: bool = True
    ) -> tuple[Any, Any]:
        moved: dict[str, Any] = {}
        settings = {name: (size, hop) for name, size, hop in self._convolutions()}

        def conv_norm(name: str, x: Any, size: int, stride: int) -> Any:
            own = trained[name]
            pads = [(size // 2, size // 2)] * 2
            x = lax.conv_general_dilated(
                x, own["kernel"], (stride, stride), pads, dimension_numbers=self.dimensions
            )
            x, moved[name] = self._normalised(x, own, moving[name], training)
            return x

        x = jax.nn.relu(conv_norm("stem", images, 7, 2))
        x = self._max_pool(x)
        for stage, (_, blocks, _) in enumerate(STAGES):
            for block in range(blocks):
                at = f"{stage}.{block}"
                y = jax.nn.relu(conv_norm(f"{at}.a", x, *settings[f"{at}.a"]))
                y = jax.nn.relu(conv_norm(f"{at}.b", y, *settings[f"{at}.b"]))
                y = conv_norm(f"{at}.c", y, *settings[f"{at}.c"])
                shortcut = (
                    conv_norm(f"{at}.shortcut", x, *settings[f"{at}.shortcut"]) if block == 0 else x
                )
                x = jax.nn.relu(y + shortcut)
        x = x.mean((1, 2) if self.last else (2, 3))
        return x @ trained["head"]["kernel"] + trained["head"]["bias"], moved

    def _normalised(self, x: Any, own: Any, moving: Any, training: bool) -> tuple[Any, Any]:
        """As Flax has it: the mean, and the mean of squares less its square."""
        axes = (0, 1, 2) if self.last else (0, 2, 3)
        mean, variance, moved = moving["mean"], moving["variance"], moving
        if training:
            mean = x.mean(axes)
            variance = jnp.maximum(lax.square(x).mean(axes) - lax.square(mean), 0)
            count = x.size // mean.size
            moved = {
                "mean": 0.9 * moving["mean"] + 0.1 * mean,
                "variance": 0.9 * moving["variance"] + 0.1 * variance * count / (count - 1),
            }
        scale = own["scale"] * lax.rsqrt(variance + 1e-5)
        mean, scale, bias = (
            v if self.last else v[:, None, None] for v in (mean, scale, own["bias"])
        )
        return (x - mean) * scale + bias, moved

    def _max_pool(self, x: Any) -> Any:
        around = (
            (lambda pair, rest: (rest, *pair, rest))
            if self.last
            else (lambda pair, rest: (rest, rest, *pair))
        )
        pads = around(((1, 1), (1, 1)), (0, 0))
        return lax.reduce_window(x, -jnp.inf, lax.max, around((3, 3), 1), around((2, 2), 1), pads)


class PtbLstm:
    """Two layers of 200 in one scan each, both products of a cell inside it, as Flax's cells have them."""

    def weights(self, arrays: Iterator[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        trained: dict[str, Any] = {"embedding": next(arrays)}
        for cell in ("first", "second"):
            trained[cell] = {
                "input": next(arrays).T,
                "hidden": next(arrays).T,
                "bias": next(arrays),
            }
        trained["head"] = {"kernel": next(arrays).T, "bias": next(arrays)}
        return trained, {}

    def __call__(
        self, trained: Any, moving: Any, tokens: Any, *, training: bool = True
    ) -> tuple[Any, Any]:
        x = trained["embedding"][tokens].swapaxes(0, 1)
        for cell in ("first", "second"):
            x = self._over_time(trained[cell], x)
        return x.swapaxes(0, 1) @ trained["head"]["kernel"] + trained["head"]["bias"], moving

    def _over_time(self, own: Any, x: Any) -> Any:
        def move(state: Any, now: Any) -> Any:
            hidden, memory = state
            gates = now @ own["input"] + hidden @ own["hidden"] + own["bias"]
            entry, forget, candidate, leave = jnp.split(gates, 4, axis=-1)
            memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(entry) * jnp.tanh(candidate)
            hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden

        zero = jnp.zeros((x.shape[1], own["hidden"].shape[0]))
        return lax.scan(move, (zero, zero), x)[1]
