"""Steps as TensorFlow's first version has them: a graph that is built once, and a session that runs parts of it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.frameworks.tensorflow import settings
from steptime.frameworks.tensorflow.steps import Steps

v1 = tf.compat.v1
Arrays = dict[str, Any]


class Session:
    """A resident batch lies in two variables; one from the host goes through two placeholders in every step.

    Variables start from placeholders, because a graph with large constants cannot be handed to a session."""

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
        self.made: list[tuple[Any, Any]] = []  # variables and what they start as
        self.call: Any = None

    def make(self, array: Any, *, trainable: bool = False) -> Any:
        with self.graph.as_default():
            initial = v1.placeholder(array.dtype, array.shape)
            variable = v1.Variable(initial, trainable=trainable, use_resource=True)
        self.made.append((variable, array))
        return variable

    def open(self, steps: Steps) -> None:
        self.steps = steps
        self.questions: dict[str, Any] = {}  # to the network, each built when it is first asked

    def feed(self, arrays: tuple[Any, ...]) -> None:
        self.batch = arrays
        if self.call is None:
            self.call = self._built(arrays)
            self._start()
        elif self.resident:
            self.write(self.resident, dict(zip(self.resident, arrays, strict=True)))

    def step(self) -> Any:
        return self.call()[0] if self.resident else self.call(*self.batch)[0]

    def predict(self, values: Any) -> Any:
        if "infer" not in self.questions:
            with self.graph.as_default():
                place = _any_number(values)
                self.questions["infer"] = self._callable(self.steps.infer(place), [place])
        return self.questions["infer"](values)

    def gradients(self, values: Any, target: Any, scale: float) -> tuple[Any, Arrays]:
        if "gradients" not in self.questions:
            with self.graph.as_default():
                places = [_any_number(values), _any_number(target), v1.placeholder(tf.float32, ())]
                self.questions["gradients"] = self._callable(self.steps.gradients(*places), places)
        loss, gradients = self.questions["gradients"](values, target, scale)
        return loss, gradients

    def read(self, variables: Arrays) -> Arrays:
        return self.session.run(variables)

    def write(self, variables: Arrays, arrays: Arrays) -> None:
        starts = {
            variable.initializer.inputs[1]: arrays[name] for name, variable in variables.items()
        }
        self.session.run([variable.initializer for variable in variables.values()], starts)

    def _start(self) -> None:
        """All variables at once, when the graph is whole: a session looks through all of it for every new question."""
        variables, arrays = (
            {str(place): pair[part] for place, pair in enumerate(self.made)} for part in (0, 1)
        )
        self.write(variables, arrays)
        self.made.clear()

    def _built(self, arrays: tuple[Any, ...]) -> Any:
        """What a step runs, without the rest of a `session.run`: the wanted parts of the graph are known beforehand."""
        places = []
        if self.case.data == "host":
            with self.graph.as_default():
                batch = places = [v1.placeholder(array.dtype, array.shape) for array in arrays]
        else:
            self.resident = {
                f"batch{place}": self.make(array) for place, array in enumerate(arrays)
            }
            batch = list(self.resident.values())
        with self.graph.as_default():
            return self._callable(
                self._fetched([tf.convert_to_tensor(part) for part in batch]), places
            )

    def _fetched(self, batch: list[Any]) -> tuple[Any, ...]:
        if self.case.phase == "inference":
            return (self.steps.infer(batch[0]),)
        result, updates = (
            self.steps.train if self.case.phase == "training" else self.steps.forward
        )(*batch)
        return result, tf.group(updates)

    def _callable(self, fetched: Any, places: list[Any]) -> Any:
        self.traces += 1
        return self.session.make_callable(fetched, places)


def _any_number(array: Any) -> Any:
    """Of samples."""
    return v1.placeholder(array.dtype, (None, *array.shape[1:]))
