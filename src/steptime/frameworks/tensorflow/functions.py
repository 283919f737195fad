"""Steps as Python functions: called directly (eager), traced into a graph, or compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.frameworks.tensorflow import exchange
from steptime.frameworks.tensorflow.steps import Steps

Arrays = dict[str, Any]


class Functions:
    """On the CPU a call returns after everything is computed, including updates of variables."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.strategy: Any = exchange.join(case) if case.shares_gradients else None
        self.traces = 0
        self.batch: tuple[Any, ...] = ()
        # The variables that an exchange alone sends, and its function. The key is `tiny`.
        self.exchanges: dict[bool, tuple[list[Any], Any]] = {}

    def make_variable(self, array: Any, *, trainable: bool = False) -> Any:
        return tf.Variable(array, trainable=trainable)

    def prepare(self, steps: Steps) -> None:
        self.infer = self._trace(steps.infer)
        self.compiled_gradients = self._trace(steps.gradients)
        if self.case.phase == "inference":
            self.run = self.infer
            return
        compute = steps.train if self.case.phase == "training" else steps.forward
        # The updates, the second result, already ran: only a session has to run them.
        self.run = self._trace(self._share(lambda values, target: compute(values, target)[0]))

    def feed(self, arrays: tuple[Any, ...]) -> None:
        self.batch = arrays if self.case.data == "host" else tuple(map(tf.constant, arrays))

    def step(self) -> Any:
        return self.run(*(map(tf.constant, self.batch) if self.case.data == "host" else self.batch))

    def predict(self, values: Any) -> Any:
        return self.infer(tf.constant(values)).numpy()

    def gradients(self, values: Any, target: Any, scale: float) -> tuple[Any, Arrays]:
        inputs = (tf.constant(values), tf.constant(target), tf.constant(scale))
        loss, gradients = self.compiled_gradients(*inputs)
        return loss.numpy(), {name: gradient.numpy() for name, gradient in gradients.items()}

    def read(self, variables: Arrays) -> Arrays:
        return {name: variable.numpy() for name, variable in variables.items()}

    def write(self, variables: Arrays, arrays: Arrays) -> None:
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def exchange(self, weights: list[Any], *, tiny: bool) -> int:
        """Average the gradients' bytes, or one number, over all ranks, and do nothing else."""
        if tiny not in self.exchanges:
            self.exchanges[tiny] = self._build_exchange(weights, tiny)
        variables, run = self.exchanges[tiny]
        run()
        return sum(variable.shape.num_elements() * variable.dtype.size for variable in variables)

    def _build_exchange(self, weights: list[Any], tiny: bool) -> tuple[list[Any], Any]:
        zeros = [tf.zeros([1])]
        if not tiny:
            zeros = [tf.zeros(weight.shape, weight.dtype) for weight in weights]
        variables = [tf.Variable(zero) for zero in zeros]
        # Copies, because the collective needs tensors that are on a device.
        average = self._share(lambda: exchange.average(map(tf.identity, variables)))
        return variables, tf.function(average, autograph=False)

    def _share(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        if self.strategy is None:
            return compute
        return lambda *inputs: self.strategy.run(compute, inputs)

    def _trace(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        if self.case.mode == "eager":
            return compute

        def traced(*inputs: Any) -> Any:
            # Python code runs only while TensorFlow traces.
            self.traces += 1
            return compute(*inputs)

        return tf.function(traced, autograph=False, jit_compile=self.case.mode == "xla")
