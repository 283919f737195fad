"""Train a case's network on its real dataset with the framework's own step; save the weights."""

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
from steptime.core.program import Program
from steptime.data.sets import Samples
from steptime.engine.score import Score
from steptime.graph import weights
from steptime.tasks import TaskContext

# Reading a loss makes the host wait for the device.
STEPS_BETWEEN_READS = 50
REPORT_SECONDS = 0.5
# Keeps this stream apart from those of weights and batches.
SHUFFLE = 0x7368_7566


def perform(context: TaskContext) -> None:
    case = context.job.case
    options = context.job.options
    workload = workloads.load(case.workload)
    train = workload.samples(case, "train")
    test = workload.samples(case, "test")
    if case.batch_size > len(train):
        raise SteptimeError(
            f"The batch size {case.batch_size} exceeds the {len(train)} training samples."
        )
    work = replace(workload.build(case), batch=train.batch(slice(0, case.batch_size)))
    program = context.framework.lower(work, case)
    dataset = workload.data_set(case).SET
    training = Training(program, case, options["epochs"], context.answers)
    epochs = []
    for number in range(options["epochs"]):
        epochs.append(training.run_epoch(number, train, test, dataset.metric))
    test_score = epochs[-1]["test"]
    metadata = {
        "network": work.graph.name,
        "fingerprint": work.graph.fingerprint,
        "set": dataset.name,
        "epochs": str(len(epochs)),
        "test": json.dumps(test_score),
    }
    weights.save(options["save"], float32_weights(program), metadata)
    facts = {
        "set": dataset.describe(),
        "epochs": epochs,
        "test": test_score,
        "seconds": sum(epoch["seconds"] for epoch in epochs),
        "weights": {"path": options["save"], "sha256": workload.digest(options["save"])},
    }
    context.journal.write_findings({"training": facts})


def float32_weights(program: Program) -> dict[str, NDArray[np.float32]]:
    arrays = program.weights()
    return {name: np.asarray(array, np.float32) for name, array in arrays.items()}


class Training:
    """Runs the epochs of one program, and reports progress if there is a listener."""

    def __init__(self, program: Program, case: Case, epochs: int, listener: IO[str] | None) -> None:
        self.program = program
        self.case = case
        self.epochs = epochs
        self.listener = listener
        self._reported = 0.0

    def run_epoch(self, number: int, train: Samples, test: Samples, metric: str) -> dict[str, Any]:
        begin = time.perf_counter()
        batches = shuffle(len(train), self.case.batch_size, [self.case.seed, SHUFFLE, number])
        losses = list(self._run_steps(number, train, batches))
        seconds = time.perf_counter() - begin
        score = evaluate(self.program, test, self.case.batch_size)
        facts = {
            "loss": float(np.mean(losses)),
            "seconds": seconds,
            "samples_per_second": batches.size / seconds,
            "test": score.to_dict(metric),
        }
        self._report({"epoch": number + 1, "epochs": self.epochs, **facts})
        return facts

    def _run_steps(
        self, number: int, train: Samples, batches: NDArray[np.int64]
    ) -> Iterator[float]:
        """The loss of every step."""
        pending: list[Any] = []
        for step, indices in enumerate(batches, start=1):
            self.program.feed(train.batch(indices))
            pending.append(self.program.step())
            if step % STEPS_BETWEEN_READS and step < len(batches):
                continue
            self.program.wait()
            losses = [_to_float(loss) for loss in pending]
            pending = []
            if not all(map(isfinite, losses)):
                raise SteptimeError(
                    f"The training diverged: the loss in step {step} of epoch {number + 1} is not "
                    "a finite number."
                )
            if time.perf_counter() - self._reported > REPORT_SECONDS:
                progress = {"epoch": number + 1, "epochs": self.epochs}
                self._report(progress | {"done": step / len(batches), "loss": losses[-1]})
            yield from losses

    def _report(self, facts: dict[str, Any]) -> None:
        if self.listener is not None:
            print(json.dumps(facts), file=self.listener, flush=True)
        self._reported = time.perf_counter()


def shuffle(count: int, size: int, seed: list[int]) -> NDArray[np.int64]:
    """The sample indices of each step, shuffled by NumPy: the same in every framework.

    Samples that do not fill a last batch are left out."""
    used = count // size * size
    return np.random.default_rng(seed).permutation(count)[:used].reshape(-1, size)


def evaluate(program: Program, samples: Samples, size: int) -> Score:
    """Every sample once, in batches of one size. Padding of the last batch does not count."""
    score = Score()
    last = len(samples) - 1
    for first in range(0, len(samples), size):
        batch = samples.batch(np.minimum(np.arange(first, first + size), last))
        count = min(size, len(samples) - first)
        score.add(program.predict(batch)[:count], batch["target"][:count])
    return score


def _to_float(loss: Any) -> float:
    """A tensor that still tracks its gradient cannot be cast directly."""
    return float(loss.item() if hasattr(loss, "item") else loss)
