"""One case, lowered: the step of its phase in its mode.

On the CPU TensorFlow's convolutions exist for channels last only. Images are transposed once, when
the batch is placed, outside of the step. So both layouts time the same operations, and `facts` says
which layout was computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, Unsupported
from steptime.core.inspection import StepProfile
from steptime.core.program import DeviceTimer
from steptime.frameworks.tensorflow import exchange, layout, settings
from steptime.frameworks.tensorflow.context import LoweringContext
from steptime.frameworks.tensorflow.functions import Functions
from steptime.frameworks.tensorflow.kernels import kernels_of
from steptime.frameworks.tensorflow.loss_scaling import LossScaling
from steptime.frameworks.tensorflow.lowering import Lowered, lower_graph
from steptime.frameworks.tensorflow.optimizer import optimizer_for
from steptime.frameworks.tensorflow.parameter_server import ParameterServerSession
from steptime.frameworks.tensorflow.profiler import profile_steps
from steptime.frameworks.tensorflow.session import Session
from steptime.frameworks.tensorflow.steps import Steps
from steptime.graph import Work
from steptime.graph.weights import check

# Powers of two, so that dividing by them is exact.
SCALES = (2.0**16, 2.0**12, 2.0**8, 2.0**4, 1.0)


class TensorflowProgram:
    """In data mode `host` each step first takes the batch from the host. Steps:

    training:  forward, mean loss, gradients and optimiser.
    forward:   forward and loss of training. A graph keeps nothing for a backward pass: it has none.
    inference: outputs for the batch, no gradients, moving statistics, no dropout.
    """

    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case) -> None:
        if case.layout == "nhwc" and len(work.graph.input.shape) != 3:
            raise Unsupported(
                f"{work.graph.name} reads no images, so layout nhwc means nothing; use nchw."
            )
        check(work.weights, work.graph)
        self.case = case
        self.work = work
        self.transpositions = layout.transpositions(work.graph)
        network = lower_graph(work.graph)
        settings.apply(case)
        self.execution = _execution(case)
        self.steps = self._steps(network)
        self.execution.prepare(self.steps)
        self.shapes = {name: array.shape for name, array in work.batch.items()}
        self._place_batch(work.batch)

    def step(self) -> Any:
        return self.execution.step()

    def wait(self) -> None:
        """A step is done when it returns."""

    def feed(self, batch: dict[str, Any]) -> None:
        for name, shape in self.shapes.items():
            if batch[name].shape != shape:
                raise SteptimeError(
                    f"The step's {name} has the shape {shape}, found {batch[name].shape}."
                )
        self._place_batch(batch)

    def compilations(self) -> int:
        return self.execution.traces

    def memory(self) -> dict[str, int]:
        return {}

    def kernels(self) -> dict[str, int]:
        return kernels_of(self.step)

    def profile(self, steps: int) -> StepProfile:
        return profile_steps(self.step, steps)

    def facts(self) -> dict[str, Any]:
        facts = settings.facts(self.case)
        if self.steps.optimizer:
            algorithm = self.work.optimizer.algorithm
            facts["optimizer"] = f"TensorFlow's own operations, {algorithm}"
        facts["loss_scaling"] = self.steps.loss_scaling is not None
        if self.case.ranks > 1 and self.case.exchange != "independent":
            facts["exchange_backend"] = "gRPC"
        return facts

    def exchange(self, *, tiny: bool = False) -> int:
        optimizer = self.steps.optimizer
        execution = self.execution
        # A session shares its weights through a parameter server instead.
        if not self.case.shares_gradients or optimizer is None or isinstance(execution, Session):
            raise Unsupported("These ranks exchange nothing.")
        return execution.exchange(optimizer.weights, tiny=tiny)

    def to_array(self, result: Any) -> Any:
        # A session returns NumPy arrays, a function tensors.
        return _array(np.asarray(result))

    def weights(self) -> dict[str, Any]:
        return self._to_logical(self.execution.read(self.steps.variables))

    def load(self, weights: dict[str, Any]) -> None:
        """Keeps the state of the optimiser."""
        check(weights, self.work.graph)
        stored = {name: self._to_stored(name, weight) for name, weight in weights.items()}
        self.execution.write(self.steps.variables, stored)

    def predict(self, batch: dict[str, Any]) -> Any:
        values, _ = self._arrays(batch)
        return _array(self.execution.predict(values))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """fp16 takes the largest scale that leaves every gradient finite, as loss scaling does in
        the long run."""
        values, target = self._arrays(batch)
        scales = SCALES if self.case.precision == "fp16" else (1.0,)
        for scale in scales:
            loss, scaled = self.execution.gradients(values, target, scale)
            logical = self._to_logical(scaled)
            gradients = {name: gradient / scale for name, gradient in logical.items()}
            if all(np.isfinite(gradient).all() for gradient in gradients.values()):
                break
        return float(loss), gradients

    def _steps(self, network: Lowered) -> Steps:
        case = self.case
        make_variable = self.execution.make_variable
        variables = {}
        for name, weight in self.work.graph.weights.items():
            stored = self._to_stored(name, self.work.weights[name])
            variables[name] = make_variable(stored, trainable=weight.trainable)
        trainable = [variable for variable in variables.values() if variable.trainable]
        step_count = optimizer = loss_scaling = None
        if case.phase == "training":
            optimizer = optimizer_for(self.work.optimizer, trainable, make_variable)
        if case.phase != "inference" and self._has_dropout():
            step_count = make_variable(np.int64(0))
        if optimizer and case.precision == "fp16":
            loss_scaling = LossScaling(make_variable)
        dtype = settings.computed_dtype(case)
        context = LoweringContext(dtype, training=False, xla=case.mode == "xla", seed=case.seed)
        steps = Steps(network, variables, context, step_count, optimizer, loss_scaling)
        if case.shares_gradients:
            return replace(steps, average=exchange.average)
        return steps

    def _has_dropout(self) -> bool:
        return any(layer.op.name == "dropout" for layer in self.work.graph)

    def _place_batch(self, batch: dict[str, Any]) -> None:
        arrays = self._arrays(batch)
        self.execution.feed(arrays[:1] if self.case.phase == "inference" else arrays)

    def _arrays(self, batch: dict[str, Any]) -> tuple[Any, Any]:
        """Copies, because the caller may change its arrays."""
        values = batch["input"]
        dtype = np.int32
        if values.dtype.kind == "f":
            dtype = settings.computed_dtype(self.case).as_numpy_dtype
        return layout.batch_to_stored(values.astype(dtype)), batch["target"].astype(np.int32)

    def _to_stored(self, name: str, weight: Any) -> Any:
        if name in self.transpositions:
            weight = weight.transpose(self.transpositions[name])
        return np.ascontiguousarray(weight, settings.stored_dtype(self.case).as_numpy_dtype)

    def _to_logical(self, weights: dict[str, Any]) -> dict[str, Any]:
        logical = {}
        for name, weight in weights.items():
            if name in self.transpositions:
                weight = weight.transpose(np.argsort(self.transpositions[name]))
            logical[name] = _array(weight)
        return logical


def _execution(case: Case) -> Session | Functions:
    if case.exchange == "parameter_server":
        return ParameterServerSession(case)
    return Session(case) if case.mode == "session" else Functions(case)


def _array(value: Any) -> Any:
    """A NumPy copy, at least fp32, because NumPy has no bf16."""
    return np.array(value, np.float64 if value.dtype == np.float64 else np.float32, order="C")
