"""Trains a case's network on its real data set, in the framework's own step, and writes the weights."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steptime import workloads
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.data.sets import Samples
from steptime.engine.score import Score
from steptime.graph import weights
from steptime.tasks import TaskContext

STEPS_BETWEEN_LOOKS = 50  # reading a loss makes the device wait
TELL_SECONDS = 0.5
SHUFFLE = 0x7368_7566  # apart from the streams of weights and batches


def perform(context: TaskContext) -> None:
    case, options = context.job.case, context.job.options
    workload = workloads.load(case.workload)
    train, test = (workload.samples(case, part) for part in ("train", "test"))
    if case.batch_size > len(train):
        raise SteptimeError(
            f"A batch of {case.batch_size} is more than the {len(train)} samples to learn from."
        )
    work = replace(workload.build(case), batch=train.batch(slice(0, case.batch_size)))
    course = Course(context.framework.lower(work, case), case, options["epochs"], context.answers)
    metric = workload.data_set(case).SET.metric
    epochs = [course.epoch(number, train, test, metric) for number in range(options["epochs"])]
    facts = {
        "network": work.graph.name,
        "fingerprint": work.graph.fingerprint,
        "set": workload.data_set(case).SET.name,
    }
    trained = {
        name: np.asarray(array, np.float32) for name, array in course.program.weights().items()
    }
    weights.save(
        options["save"],
        trained,
        {**facts, "epochs": str(len(epochs)), "test": json.dumps(epochs[-1]["test"])},
    )
    told = {
        "set": workload.data_set(case).SET.describe(),
        "epochs": epochs,
        "test": epochs[-1]["test"],
        "seconds": sum(epoch["seconds"] for epoch in epochs),
        "weights": {"path": options["save"], "sha256": workload.digest(options["save"])},
    }
    context.journal.write_findings({"training": told})


class Course:
    """A program on its way through the epochs; tells how far it is where somebody listens."""

    def __init__(self, program: Any, case: Case, epochs: int, listener: IO[str] | None) -> None:
        self.program, self.case, self.epochs, self.listener = program, case, epochs, listener
        self.told = 0.0

    def epoch(self, number: int, train: Samples, test: Samples, metric: str) -> dict[str, Any]:
        begin = time.perf_counter()
        places = order(len(train), self.case.batch_size, [self.case.seed, SHUFFLE, number])
        losses = list(self._steps(number, train, places))
        seconds = time.perf_counter() - begin
        found = {
            "loss": float(np.mean(losses)),
            "seconds": seconds,
            "samples_per_second": places.size / seconds,
            "test": evaluate(self.program, test, self.case.batch_size).to_dict(metric),
        }
        self._tell({"epoch": number + 1, "epochs": self.epochs, **found})
        return found

    def _steps(self, number: int, train: Samples, places: NDArray[np.int64]) -> Iterator[float]:
        waiting: list[Any] = []
        for step, chosen in enumerate(places, start=1):
            self.program.feed(train.batch(chosen))
            waiting.append(self.program.step())
            if step % STEPS_BETWEEN_LOOKS and step < len(places):
                continue
            self.program.wait()
            found, waiting = [_number(loss) for loss in waiting], []
            if not all(map(isfinite, found)):
                raise SteptimeError(
                    f"The loss is no number any more in step {step} of epoch {number + 1}: it diverged."
                )
            self._tell_sometimes(
                {
                    "epoch": number + 1,
                    "epochs": self.epochs,
                    "done": step / len(places),
                    "loss": found[-1],
                }
            )
            yield from found

    def _tell_sometimes(self, words: dict[str, Any]) -> None:
        if time.perf_counter() - self.told > TELL_SECONDS:
            self._tell(words)

    def _tell(self, words: dict[str, Any]) -> None:
        if self.listener is not None:
            print(json.dumps(words), file=self.listener, flush=True)
        self.told = time.perf_counter()


def order(count: int, size: int, seed: list[int]) -> NDArray[np.int64]:
    """The samples of each step, drawn by NumPy: the same in every framework. A rest that fills no batch sits out."""
    whole = count // size * size
    return np.random.default_rng(seed).permutation(count)[:whole].reshape(-1, size)


def evaluate(program: Any, samples: Samples, size: int) -> Score:
    """Every sample once, in batches of one size: the last is filled up with what does not count."""
    score = Score()
    for first in range(0, len(samples), size):
        batch = samples.batch(np.minimum(np.arange(first, first + size), len(samples) - 1))
        counts = min(size, len(samples) - first)
        score.add(program.predict(batch)[:counts], batch["target"][:counts])
    return score


def _number(loss: Any) -> float:
    """A tensor that still knows its gradient does not like to be cast."""
    return float(loss.item() if hasattr(loss, "item") else loss)
