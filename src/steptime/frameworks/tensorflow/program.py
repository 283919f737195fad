"""One case, lowered: the step of its phase in its mode, and the part that proves the lowering.

On the CPU TensorFlow's convolutions exist for channels last alone. Images are turned once, when the batch is placed,
and that is no part of a step: so both layouts time the same operations, and `facts` says which layout was computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, Unsupported
from steptime.core.inspection import Watched
from steptime.core.program import DeviceTimer
from steptime.frameworks.tensorflow import exchange, layout, settings
from steptime.frameworks.tensorflow.context import LoweringContext
from steptime.frameworks.tensorflow.functions import Functions
from steptime.frameworks.tensorflow.kernels import kernels_of
from steptime.frameworks.tensorflow.lowering import lower_graph
from steptime.frameworks.tensorflow.optimizer import Rule
from steptime.frameworks.tensorflow.profiler import watch
from steptime.frameworks.tensorflow.scaling import Scaling
from steptime.frameworks.tensorflow.server import Served
from steptime.frameworks.tensorflow.session import Session
from steptime.frameworks.tensorflow.steps import Steps
from steptime.graph import Work
from steptime.graph.weights import check

SCALES = (2.0**16, 2.0**12, 2.0**8, 2.0**4, 1.0)


class TensorflowProgram:
    """Steps, in data mode `host` each with the batch handed over before it:

    training:  forward, mean loss, gradients and optimiser.
    forward:   training's forward and loss; a graph then keeps nothing for a backward pass, because it has none.
    inference: outputs for the batch, no gradients, moving statistics, no dropout.
    """

    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case) -> None:
        if case.layout == "nhwc" and len(work.graph.input.shape) != 3:
            raise Unsupported(
                f"{work.graph.name} reads no images, so layout nhwc means nothing; use nchw."
            )
        check(work.weights, work.graph)
        self.case, self.work = case, work
        self.turns = layout.turns(work.graph)
        network = lower_graph(work.graph)
        settings.apply(case)
        self.execution = _execution(case)
        self.steps = self._steps(network)
        self.execution.open(self.steps)
        self.shapes = {part: array.shape for part, array in work.batch.items()}
        self._place(work.batch)

    def step(self) -> Any:
        return self.execution.step()

    def wait(self) -> None:
        """A step has ended when it returns."""

    def feed(self, batch: dict[str, Any]) -> None:
        for part, shape in self.shapes.items():
            if batch[part].shape != shape:
                raise SteptimeError(
                    f"The step's {part} has the shape {shape}, found {batch[part].shape}."
                )
        self._place(batch)

    def compilations(self) -> int:
        return self.execution.traces

    def memory(self) -> dict[str, int]:
        return {}

    def kernels(self) -> dict[str, int]:
        return kernels_of(self.step)

    def watch(self, steps: int) -> Watched:
        return watch(self.step, steps)

    def facts(self) -> dict[str, Any]:
        own = (
            {"optimizer": f"TensorFlow's own operations, {self.work.optimizer.algorithm}"}
            if self.steps.rule
            else {}
        )
        shared = (
            {"exchange_backend": "gRPC"}
            if self.case.ranks > 1 and self.case.exchange != "independent"
            else {}
        )
        return {
            **settings.facts(self.case),
            **own,
            "loss_scaling": self.steps.scaling is not None,
            **shared,
        }

    def exchange(self, *, tiny: bool = False) -> int:
        if (
            not self.case.shares_gradients
            or self.steps.rule is None
            or isinstance(self.execution, Session)
        ):
            raise Unsupported("These ranks exchange nothing.")
        return self.execution.exchange(self.steps.rule.weights, tiny=tiny)

    def weights(self) -> dict[str, Any]:
        return self._logical(self.execution.read(self.steps.variables))

    def load(self, weights: dict[str, Any]) -> None:
        """What the optimiser remembers stays."""
        check(weights, self.work.graph)
        self.execution.write(
            self.steps.variables, {name: self._stored(name, weights[name]) for name in weights}
        )

    def predict(self, batch: dict[str, Any]) -> Any:
        return _array(self.execution.predict(self._arrays(batch)[0]))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """fp16 takes the largest scale that leaves every gradient finite, as loss scaling does in the long run."""
        values, target = self._arrays(batch)
        for scale in SCALES if self.case.precision == "fp16" else (1.0,):
            loss, found = self.execution.gradients(values, target, scale)
            gradients = {name: value / scale for name, value in self._logical(found).items()}
            if all(np.isfinite(value).all() for value in gradients.values()):
                break
        return float(loss), gradients

    def _steps(self, network: Any) -> Steps:
        case, make = self.case, self.execution.make
        variables = {
            name: make(self._stored(name, self.work.weights[name]), trainable=weight.trainable)
            for name, weight in self.work.graph.weights.items()
        }
        trained = [variable for variable in variables.values() if variable.trainable]
        rule = Rule(self.work.optimizer, trained, make) if case.phase == "training" else None
        drops = case.phase != "inference" and any(
            layer.op.name == "dropout" for layer in self.work.graph
        )
        return Steps(
            network,
            variables,
            LoweringContext(
                settings.computed_dtype(case),
                training=False,
                xla=case.mode == "xla",
                seed=case.seed,
            ),
            make(np.int64(0)) if drops else None,
            rule,
            Scaling(make) if rule and case.precision == "fp16" else None,
            **({"average": exchange.averaged} if case.shares_gradients else {}),
        )

    def _place(self, batch: dict[str, Any]) -> None:
        arrays = self._arrays(batch)
        self.execution.feed(arrays[:1] if self.case.phase == "inference" else arrays)

    def _arrays(self, batch: dict[str, Any]) -> tuple[Any, Any]:
        """Copies, so that what is measured does not change under the caller's hands."""
        values, floats = batch["input"], batch["input"].dtype.kind == "f"
        dtype = settings.computed_dtype(self.case).as_numpy_dtype if floats else np.int32
        return layout.stored(values.astype(dtype)), batch["target"].astype(np.int32)

    def _stored(self, name: str, weight: Any) -> Any:
        turned = weight.transpose(self.turns[name]) if name in self.turns else weight
        return np.ascontiguousarray(turned, settings.stored_dtype(self.case).as_numpy_dtype)

    def _logical(self, weights: dict[str, Any]) -> dict[str, Any]:
        back = {name: np.argsort(turn) for name, turn in self.turns.items()}
        return {
            name: _array(weight.transpose(back[name]) if name in back else weight)
            for name, weight in weights.items()
        }


def _execution(case: Case) -> Session | Functions:
    if case.exchange == "parameter_server":
        return Served(case)
    return Session(case) if case.mode == "session" else Functions(case)


def _array(value: Any) -> Any:
    """NumPy's own memory, at least fp32, because NumPy has no bf16."""
    return np.array(value, np.float64 if value.dtype == np.float64 else np.float32, order="C")
