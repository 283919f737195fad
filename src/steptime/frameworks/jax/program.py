"""One case, lowered: the step of each phase as one jitted program, and the part that proves the lowering.

JAX returns before the work is done, on the CPU too, and has no events on the device's queue that could tell when a step
began and ended. So `step` waits until everything that it made is there, new weights and state included, on every
device: the host's stamps then tile the time of finished steps, and none can be mistaken for its launch. What is given
up is the overlap of one step's launch with the step before it; `launch` is the step without the wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.inspection import Account, Watched
from steptime.core.program import DeviceTimer
from steptime.frameworks.jax import settings
from steptime.frameworks.jax.context import Array
from steptime.frameworks.jax.kernels import executed
from steptime.frameworks.jax.layout import Layout
from steptime.frameworks.jax.lowering import lower_graph
from steptime.frameworks.jax.optimizer import optimizer_for
from steptime.frameworks.jax.profiler import account, watch
from steptime.frameworks.jax.scaling import Scaling
from steptime.frameworks.jax.steps import Moving, State, Steps
from steptime.graph import Work
from steptime.graph.weights import check

SCALES = (2.0**16, 2.0**12, 2.0**8, 2.0**4, 1.0)
MEMORY = {"peak_bytes_in_use": "peak_allocated_bytes", "peak_pool_bytes": "peak_reserved_bytes"}


class JaxProgram:
    """Steps, in data mode `host` each with the copy of the batch to the device before it:

    training:  forward, mean loss, gradients and optimiser in one program that overwrites the state it is given.
    forward:   training's forward and loss, with all that a backward pass would need written down, but no backward pass.
    inference: outputs for the batch, no gradients, moving statistics, no dropout.
    """

    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case) -> None:
        self.case, self.work = case, work
        self.layout = _layout(work, case)
        self.rule = optimizer_for(work.optimizer) if case.phase == "training" else None
        self.device = settings.apply(case)
        self.dtype = settings.computed_dtype(case)
        self.state = self._start()
        self.pending: Any = ()
        self.feed(work.batch)
        self.steps = self._steps()
        self.infer, self.jitted_gradients = jax.jit(self.steps.infer), jax.jit(self.steps.gradients)
        self.run, self.launch = self._choose()

    def step(self) -> Any:
        outputs = self.launch()
        self.wait()
        return outputs

    def wait(self) -> None:
        jax.block_until_ready(self.pending)
        self.pending = ()

    def compilations(self) -> int:
        return sum(jitted._cache_size() for jitted in {self.run, self.infer, self.jitted_gradients})

    def memory(self) -> dict[str, int]:
        account = self.device.memory_stats() or {}
        return {own: account[theirs] for theirs, own in MEMORY.items() if theirs in account}

    def facts(self) -> dict[str, Any]:
        own = {"optimizer": f"optax, {self.work.optimizer.algorithm}"} if self.rule else {}
        return {
            **settings.facts(self.case, self.device),
            **own,
            "loss_scaling": self.state.scaling is not None,
        }

    def feed(self, batch: dict[str, Any]) -> None:
        arrays, far = self._arrays(batch), self.case.data == "host"
        self.host: Any = arrays if far else ()
        self.resident: Any = () if far else self._share(arrays)

    def kernels(self) -> dict[str, int]:
        """The program is the one that the steps run: JAX keeps what it compiled."""
        settings.apply(self.case)
        return executed(self.run.lower(*self._arguments()).compile().as_text())

    def watch(self, steps: int) -> Watched:
        settings.apply(self.case)
        return watch(self, steps)

    def account(self) -> Account:
        settings.apply(self.case)
        return account(self)

    def weights(self) -> dict[str, Any]:
        weights, moving = self._own()
        own = {**weights, **moving.statistics}
        return {
            name: _array(self.layout.logical_weight(name, own[name]))
            for name in self.work.graph.weights
        }

    def load(self, weights: dict[str, Any]) -> None:
        """What the optimiser remembers stays."""
        check(weights, self.work.graph)
        settings.apply(self.case)
        trained, statistics = self._placed(weights)
        self.state = self.state._replace(
            weights=trained, moving=self.state.moving._replace(statistics=statistics)
        )

    def predict(self, batch: dict[str, Any]) -> Any:
        settings.apply(self.case)
        values, _ = self._put(self._arrays(batch))
        return _array(self.infer(*self._own(), values))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """fp16 takes the largest scale that leaves every gradient finite, as loss scaling does in the long run."""
        settings.apply(self.case)
        placed = self._put(self._arrays(batch))
        for scale in SCALES if self.case.precision == "fp16" else (1.0,):
            loss, found = self.jitted_gradients(*self._own(), *placed, np.float32(scale))
            gradients = {
                name: _array(self.layout.logical_weight(name, value)) / scale
                for name, value in found.items()
            }
            if all(np.isfinite(value).all() for value in gradients.values()):
                break
        return loss.item(), gradients

    def _choose(self) -> tuple[Any, Callable[[], Any]]:
        if self.case.phase == "inference":
            return self.infer, self._launch_inference
        if self.case.phase == "forward":
            return jax.jit(self.steps.forward, donate_argnums=1), self._launch_forward
        train = self.steps.train if self.state.scaling is None else self.steps.train_scaled
        return jax.jit(train, donate_argnums=0), self._launch_training

    def _arguments(self) -> tuple[Any, ...]:
        """Of the phase's program."""
        state, batch = self.state, self._batch()
        if self.case.phase == "training":
            return state, *batch
        return (
            state.weights,
            state.moving,
            *(batch[:1] if self.case.phase == "inference" else batch),
        )

    def _launch_training(self) -> Array:
        self.state, loss = self.pending = self.run(*self._arguments())
        return loss

    def _launch_forward(self) -> Array:
        moving, loss, _ = self.pending = self.run(*self._arguments())
        self.state = self.state._replace(moving=moving)
        return loss

    def _launch_inference(self) -> Array:
        output = self.pending = self.run(*self._arguments())
        return output

    def _batch(self) -> tuple[Array, ...]:
        return self._share(self.host) if self.host else self.resident

    def _steps(self) -> Steps:
        return Steps(lower_graph(self.work.graph), self.layout, self.dtype, self.rule)

    def _share(self, arrays: Any) -> Any:
        """A step's batch, or this rank's share of it."""
        return self._put(arrays)

    def _own(self) -> tuple[dict[str, Array], Moving]:
        return self.state.weights, self.state.moving

    def _put(self, arrays: Any) -> Any:
        """A copy on the CPU too: what is measured there must not change under the caller's hands."""
        return jax.device_put(arrays, self.device, may_alias=False)

    def _arrays(self, batch: dict[str, Any]) -> tuple[Any, Any]:
        values, target = batch["input"], batch["target"].astype(np.int32)
        values = values.astype(self.dtype if values.dtype.kind == "f" else np.int32)
        return np.ascontiguousarray(self.layout.stored(values)), target

    def _start(self) -> State:
        drops = self.case.phase != "inference" and any(
            layer.op.name == "dropout" for layer in self.work.graph
        )
        check(self.work.weights, self.work.graph)
        weights, statistics = self._placed(self.work.weights)
        rule = self.rule.init(weights) if self.rule else None
        scaling = Scaling.start() if self.rule and self.case.precision == "fp16" else None
        moving = Moving(statistics, jax.random.key(self.case.seed) if drops else None)
        return jax.device_put(State(weights, moving, rule, scaling), self.device)

    def _placed(self, weights: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The trainable ones, and the rest."""
        dtype, own = settings.stored_dtype(self.case), self.work.graph.weights
        arrays = {
            name: np.ascontiguousarray(self.layout.stored_weight(name, weights[name]), dtype)
            for name in own
        }
        placed = self._put(arrays)
        trained = {name: value for name, value in placed.items() if own[name].trainable}
        return trained, {name: value for name, value in placed.items() if name not in trained}


def _layout(work: Work, case: Case) -> Layout:
    if case.layout == "nhwc" and len(work.graph.input.shape) != 3:
        raise Unsupported(
            f"{work.graph.name} reads no images, so layout nhwc means nothing; use nchw."
        )
    return Layout.of(work.graph, last=case.layout == "nhwc")


def _array(value: Array) -> Any:
    """NumPy's own memory, at least fp32, because NumPy has no bf16."""
    return np.array(value, np.promote_types(np.float32, value.dtype), order="C")
