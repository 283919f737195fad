"""Steps as in TensorFlow 1: a graph that is built once, and a session that runs parts of it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.frameworks.tensorflow import settings
from steptime.frameworks.tensorflow.steps import Steps

v1 = tf.compat.v1
Arrays = dict[str, Any]


class Session:
    """A resident batch is in two variables. A batch from the host goes through two placeholders in
    every step.

    The initial values of variables come from placeholders, because a graph with large constants
    cannot be passed to a session."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.traces = 0
        threads = settings.threads_for(case)
        self.graph = tf.Graph()
        config = v1.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        )
        self.session = v1.Session(graph=self.graph, config=config)
        self.batch: tuple[Any, ...] = ()
        self.resident: Arrays = {}
        # Variables with their initial values, until the session has written them.
        self.uninitialized: list[tuple[Any, Any]] = []
        # Functions besides the step, each built when it is first used.
        self.callables: dict[str, Any] = {}
        self.call: Any = None

    def make_variable(self, array: Any, *, trainable: bool = False) -> Any:
        with self.graph.as_default():
            initial = v1.placeholder(array.dtype, array.shape)
            variable = v1.Variable(initial, trainable=trainable, use_resource=True)
        self.uninitialized.append((variable, array))
        return variable

    def prepare(self, steps: Steps) -> None:
        self.steps = steps

    def feed(self, arrays: tuple[Any, ...]) -> None:
        self.batch = arrays
        if self.call is None:
            self.call = self._build(arrays)
            self._initialize()
        elif self.resident:
            self.write(self.resident, dict(zip(self.resident, arrays, strict=True)))

    def step(self) -> Any:
        return self.call()[0] if self.resident else self.call(*self.batch)[0]

    def predict(self, values: Any) -> Any:
        if "infer" not in self.callables:
            with self.graph.as_default():
                placeholder = _batch_placeholder(values)
                output = self.steps.infer(placeholder)
                self.callables["infer"] = self._make_callable(output, [placeholder])
        return self.callables["infer"](values)

    def gradients(self, values: Any, target: Any, scale: float) -> tuple[Any, Arrays]:
        if "gradients" not in self.callables:
            with self.graph.as_default():
                inputs = [_batch_placeholder(values), _batch_placeholder(target)]
                inputs.append(v1.placeholder(tf.float32, ()))
                outputs = self.steps.gradients(*inputs)
                self.callables["gradients"] = self._make_callable(outputs, inputs)
        loss, gradients = self.callables["gradients"](values, target, scale)
        return loss, gradients

    def read(self, variables: Arrays) -> Arrays:
        return self.session.run(variables)

    def write(self, variables: Arrays, arrays: Arrays) -> None:
        initial_values = {}
        for name, variable in variables.items():
            placeholder = variable.initializer.inputs[1]
            initial_values[placeholder] = arrays[name]
        initializers = [variable.initializer for variable in variables.values()]
        self.session.run(initializers, initial_values)

    def _initialize(self) -> None:
        """Write all variables at once, when the graph is complete: a session goes through the
        complete graph for every new set of outputs."""
        variables = {}
        arrays = {}
        for index, (variable, array) in enumerate(self.uninitialized):
            variables[str(index)] = variable
            arrays[str(index)] = array
        self.write(variables, arrays)
        self.uninitialized.clear()

    def _build(self, arrays: tuple[Any, ...]) -> Any:
        """What a step calls. Unlike `session.run` it does not look up its outputs in each step."""
        placeholders: list[Any] = []
        if self.case.data == "host":
            with self.graph.as_default():
                placeholders = [v1.placeholder(array.dtype, array.shape) for array in arrays]
            batch = placeholders
        else:
            for index, array in enumerate(arrays):
                self.resident[f"batch{index}"] = self.make_variable(array)
            batch = list(self.resident.values())
        with self.graph.as_default():
            outputs = self._outputs([tf.convert_to_tensor(source) for source in batch])
            return self._make_callable(outputs, placeholders)

    def _outputs(self, batch: list[Any]) -> tuple[Any, ...]:
        if self.case.phase == "inference":
            return (self.steps.infer(batch[0]),)
        compute = self.steps.train if self.case.phase == "training" else self.steps.forward
        result, updates = compute(*batch)
        return result, tf.group(updates)

    def _make_callable(self, outputs: Any, placeholders: list[Any]) -> Any:
        self.traces += 1
        return self.session.make_callable(outputs, placeholders)


def _batch_placeholder(array: Any) -> Any:
    """For any number of samples."""
    return v1.placeholder(array.dtype, (None, *array.shape[1:]))
