"""One case, lowered: the step of each phase is one jitted program.

JAX returns before the work is done, on the CPU too, and has no events on the queue of a device that
could say when a step began and ended. So `step` waits, on every device, until everything that it
made is ready, including new weights and state. The host's timestamps then delimit finished steps.
This gives up the overlap of the launch of one step with the step before it; `launch` is the step
without the wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.inspection import MemoryAccount, StepProfile
from steptime.core.program import DeviceTimer
from steptime.frameworks.jax import settings
from steptime.frameworks.jax.context import Array
from steptime.frameworks.jax.kernels import kernels_of
from steptime.frameworks.jax.layout import Layout
from steptime.frameworks.jax.loss_scaling import LossScaling
from steptime.frameworks.jax.lowering import lower_graph
from steptime.frameworks.jax.memory import account_memory
from steptime.frameworks.jax.optimizer import optimizer_for
from steptime.frameworks.jax.profiler import profile_steps
from steptime.frameworks.jax.steps import Moving, State, Steps
from steptime.graph import Work
from steptime.graph.weights import check

# Powers of two, so that dividing by them is exact.
SCALES = (2.0**16, 2.0**12, 2.0**8, 2.0**4, 1.0)
MEMORY = {"peak_bytes_in_use": "peak_allocated_bytes", "peak_pool_bytes": "peak_reserved_bytes"}


class JaxProgram:
    """In data mode `host` each step first copies the batch to the device. Steps:

    training:  forward, mean loss, gradients and optimiser in one program that overwrites its state.
    forward:   forward and loss of training. It writes all that a backward pass would need.
    inference: outputs for the batch, no gradients, moving statistics, no dropout.
    """

    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case) -> None:
        self.case = case
        self.work = work
        self.layout = _layout(work, case)
        self.optimizer = optimizer_for(work.optimizer) if case.phase == "training" else None
        self.device = settings.apply(case)
        self.dtype = settings.computed_dtype(case)
        self.state = self._start()
        self.pending: Any = ()
        self.feed(work.batch)
        self.steps = self._steps()
        self.infer = jax.jit(self.steps.infer)
        self.jitted_gradients = jax.jit(self.steps.gradients)
        self.run, self.launch = self._choose()

    def step(self) -> Any:
        outputs = self.launch()
        self.wait()
        return outputs

    def wait(self) -> None:
        jax.block_until_ready(self.pending)
        self.pending = ()

    def compilations(self) -> int:
        # A set: in inference, `run` and `infer` are the same function.
        return sum(jitted._cache_size() for jitted in {self.run, self.infer, self.jitted_gradients})

    def memory(self) -> dict[str, int]:
        stats = self.device.memory_stats() or {}
        return {name: stats[jax_name] for jax_name, name in MEMORY.items() if jax_name in stats}

    def facts(self) -> dict[str, Any]:
        facts = settings.facts(self.case, self.device)
        if self.optimizer:
            facts["optimizer"] = f"optax, {self.work.optimizer.algorithm}"
        facts["loss_scaling"] = self.state.loss_scaling is not None
        return facts

    def feed(self, batch: dict[str, Any]) -> None:
        arrays = self._arrays(batch)
        from_host = self.case.data == "host"
        self.host: Any = arrays if from_host else ()
        self.resident: Any = () if from_host else self._place_batch(arrays)

    def kernels(self) -> dict[str, int]:
        settings.apply(self.case)
        return kernels_of(self._compile().as_text())

    def profile(self, steps: int) -> StepProfile:
        settings.apply(self.case)
        return profile_steps(self, self._compile(), steps, device=self.device.platform != "cpu")

    def memory_account(self) -> MemoryAccount:
        settings.apply(self.case)
        return account_memory(self.state, self._batch(), self._compile())

    def to_array(self, result: Any) -> Any:
        return _array(result)

    def weights(self) -> dict[str, Any]:
        trainable, moving = self._local_state()
        stored = trainable | moving.statistics
        return {name: self._to_numpy(name, stored[name]) for name in self.work.graph.weights}

    def load(self, weights: dict[str, Any]) -> None:
        """Keeps the state of the optimiser."""
        check(weights, self.work.graph)
        settings.apply(self.case)
        trainable, statistics = self._place_weights(weights)
        moving = self.state.moving._replace(statistics=statistics)
        self.state = self.state._replace(weights=trainable, moving=moving)

    def predict(self, batch: dict[str, Any]) -> Any:
        settings.apply(self.case)
        values, _ = self._put(self._arrays(batch))
        return _array(self.infer(*self._local_state(), values))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """fp16 takes the largest scale that leaves every gradient finite, as loss scaling does in
        the long run."""
        settings.apply(self.case)
        state = self._local_state()
        placed = self._put(self._arrays(batch))
        scales = SCALES if self.case.precision == "fp16" else (1.0,)
        for scale in scales:
            loss, scaled = self.jitted_gradients(*state, *placed, np.float32(scale))
            gradients = {
                name: self._to_numpy(name, gradient) / scale for name, gradient in scaled.items()
            }
            if all(np.isfinite(gradient).all() for gradient in gradients.values()):
                break
        return loss.item(), gradients

    def _choose(self) -> tuple[Any, Callable[[], Any]]:
        """The jitted function of the phase, and the method that launches it."""
        if self.case.phase == "inference":
            return self.infer, self._launch_inference
        if self.case.phase == "forward":
            return jax.jit(self.steps.forward, donate_argnums=1), self._launch_forward
        train = self.steps.train
        if self.state.loss_scaling is not None:
            train = self.steps.train_scaled
        # Donated state: the new state takes the memory of the old one.
        return jax.jit(train, donate_argnums=0), self._launch_training

    def _compile(self) -> Any:
        # JAX takes the program that the steps run from its cache.
        return self.run.lower(*self._arguments()).compile()

    def _arguments(self) -> tuple[Any, ...]:
        """The arguments of `run`."""
        state = self.state
        batch = self._batch()
        if self.case.phase == "training":
            return state, *batch
        if self.case.phase == "inference":
            return state.weights, state.moving, *batch[:1]
        return state.weights, state.moving, *batch

    # `pending` holds every output of the program, so that `wait` waits for the new state too.

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
        return self._place_batch(self.host) if self.host else self.resident

    def _steps(self) -> Steps:
        network = lower_graph(self.work.graph)
        has_cudnn = settings.has_cudnn_attention(self.device)
        return Steps(network, self.layout, self.dtype, self.optimizer, has_cudnn)

    def _place_batch(self, arrays: Any) -> Any:
        """The batch of a step on the device, or this rank's share of it."""
        return self._put(arrays)

    def _local_state(self) -> tuple[dict[str, Array], Moving]:
        return self.state.weights, self.state.moving

    def _put(self, arrays: Any) -> Any:
        """A copy on the CPU too: the caller may change its arrays."""
        return jax.device_put(arrays, self.device, may_alias=False)

    def _arrays(self, batch: dict[str, Any]) -> tuple[Any, Any]:
        values = batch["input"]
        target = batch["target"].astype(np.int32)
        values = values.astype(self.dtype if values.dtype.kind == "f" else np.int32)
        return np.ascontiguousarray(self.layout.to_stored(values)), target

    def _start(self) -> State:
        check(self.work.weights, self.work.graph)
        has_dropout = any(layer.op.name == "dropout" for layer in self.work.graph)
        draws = has_dropout and self.case.phase != "inference"
        weights, statistics = self._place_weights(self.work.weights)
        moving = Moving(statistics, jax.random.key(self.case.seed) if draws else None)
        optimizer = loss_scaling = None
        if self.optimizer:
            optimizer = self.optimizer.init(weights)
            if self.case.precision == "fp16":
                loss_scaling = LossScaling.start()
        return jax.device_put(State(weights, moving, optimizer, loss_scaling), self.device)

    def _place_weights(self, weights: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
        """On the device: the trainable ones, and the others."""
        dtype = settings.stored_dtype(self.case)
        arrays = {}
        for name in self.work.graph.weights:
            stored = self.layout.weight_to_stored(name, weights[name])
            arrays[name] = np.ascontiguousarray(stored, dtype)
        trainable = {}
        others = {}
        for name, value in self._put(arrays).items():
            if self.work.graph.weights[name].trainable:
                trainable[name] = value
            else:
                others[name] = value
        return trainable, others

    def _to_numpy(self, name: str, value: Array) -> Any:
        return _array(self.layout.weight_to_logical(name, value))


def _layout(work: Work, case: Case) -> Layout:
    if case.layout == "nhwc" and len(work.graph.input.shape) != 3:
        raise Unsupported(
            f"{work.graph.name} reads no images, so layout nhwc means nothing; use nchw."
        )
    return Layout.for_graph(work.graph, last=case.layout == "nhwc")


def _array(value: Array) -> Any:
    """A NumPy copy, at least fp32, because NumPy has no bf16."""
    return np.array(value, np.promote_types(np.float32, value.dtype), order="C")
