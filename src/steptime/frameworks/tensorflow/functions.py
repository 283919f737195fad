"""Steps as Python functions: called as they are (eager), traced into a graph, or compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.frameworks.tensorflow import exchange
from steptime.frameworks.tensorflow.steps import Steps

Arrays = dict[str, Any]


class Functions:
    """TensorFlow has computed everything when a call on the CPU returns, updates of variables included."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.strategy: Any = exchange.join(case) if case.shares_gradients else None
        self.traces = 0
        self.batch: tuple[Any, ...] = ()
        self.alone: dict[
            bool, tuple[list[Any], Any]
        ] = {}  # what an exchange by itself sends, and its function

    def make(self, array: Any, *, trainable: bool = False) -> Any:
        return tf.Variable(array, trainable=trainable)

    def open(self, steps: Steps) -> None:
        self.infer, self.compiled_gradients = (
            self._wrapped(steps.infer),
            self._wrapped(steps.gradients),
        )
        if self.case.phase == "inference":
            self.run = self.infer
        else:
            compute = steps.train if self.case.phase == "training" else steps.forward
            self.run = self._wrapped(
                self._shared(lambda values, target: compute(values, target)[0])
            )

    def feed(self, arrays: tuple[Any, ...]) -> None:
        self.batch = arrays if self.case.data == "host" else tuple(map(tf.constant, arrays))

    def step(self) -> Any:
        return self.run(*(map(tf.constant, self.batch) if self.case.data == "host" else self.batch))

    def predict(self, values: Any) -> Any:
        return self.infer(tf.constant(values)).numpy()

    def gradients(self, values: Any, target: Any, scale: float) -> tuple[Any, Arrays]:
        loss, gradients = self.compiled_gradients(
            tf.constant(values), tf.constant(target), tf.constant(scale)
        )
        return loss.numpy(), {name: gradient.numpy() for name, gradient in gradients.items()}

    def read(self, variables: Arrays) -> Arrays:
        return {name: variable.numpy() for name, variable in variables.items()}

    def write(self, variables: Arrays, arrays: Arrays) -> None:
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def exchange(self, weights: list[Any], *, tiny: bool) -> int:
        """The gradients' bytes, or one number's, once over all ranks. Copies, because only these have a device."""
        if tiny not in self.alone:
            zeros = [tf.zeros([1])] if tiny else [tf.zeros(one.shape, one.dtype) for one in weights]
            sent = [tf.Variable(zero) for zero in zeros]
            once = tf.function(
                self._shared(lambda: exchange.averaged(map(tf.identity, sent))), autograph=False
            )
            self.alone[tiny] = (sent, once)
        sent, once = self.alone[tiny]
        once()
        return sum(one.shape.num_elements() * one.dtype.size for one in sent)

    def _shared(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        return (
            compute if self.strategy is None else lambda *inputs: self.strategy.run(compute, inputs)
        )

    def _wrapped(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        if self.case.mode == "eager":
            return compute

        def traced(*inputs: Any) -> Any:
            self.traces += 1  # Python runs only while TensorFlow traces
            return compute(*inputs)

        return tf.function(traced, autograph=False, jit_compile=self.case.mode == "xla")
