"""The reference's evidence, kept in files: exact arrays once, deviations of rounded runs once for each precision."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from steptime import plugins
from steptime.core.errors import SteptimeError
from steptime.graph import Work
from steptime.store.atomic import atomic_write
from steptime.tasks.certify.evidence import (
    DROPOUT_STEPS,
    STEPS,
    Evidence,
    Lowering,
    dropout_losses,
    gather,
    gentle_rate,
)
from steptime.tasks.certify.judge import Deviations, deviation

EVIDENCE = 5  # counts up when what is gathered changes
SMALL = 4_000_000  # weights: below it they are kept in float64


@dataclass(frozen=True)
class Effort:
    """How much is computed for one network: less where one pass through it takes long."""

    steps: int = STEPS  # of the trajectory, for all who are compared
    draws: int = 3  # of rounding errors, up to the first step
    trajectories: int = 3  # of these draws so many go on to the last step

    @classmethod
    def of(cls, options: dict[str, Any]) -> Effort:
        return cls(
            **{field.name: options[field.name] for field in fields(cls) if field.name in options}
        )


class Shelved:
    """Where one network's reference lies. The name is a digest of all that it depends on, its own code included."""

    def __init__(self, folder: Path, work: Work, framework: str, effort: Effort) -> None:
        source = plugins.source("frameworks", framework)
        code = sorted(path.read_bytes() for path in source.parent.glob("*.py")) if source else []
        settings = [EVIDENCE, effort.steps, work.graph.to_dict()["layers"], asdict(work.optimizer)]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for text in (
            *code,
            *(np.ascontiguousarray(array).tobytes() for array in work.batch.values()),
        ):
            digest.update(text)
        self.name = f"{work.graph.fingerprint}-{digest.hexdigest()[:12]}"
        self.folder, self.effort = folder, effort
        self.exact = folder / f"{self.name}.npz"

    def deviations(self, precision: str) -> Path:
        return (
            self.folder
            / f"{self.name}-{precision}-{self.effort.draws}-{self.effort.trajectories}.json"
        )

    def read_exact(self) -> Evidence:
        if not self.exact.exists():
            raise SteptimeError(
                f"There is no reference {self.exact}; `steptime certify` computes it first."
            )
        found: Evidence = {}
        with np.load(self.exact) as arrays:
            for key in arrays.files:
                item, _, name = key.partition("/")
                found.setdefault(item, {})[name] = arrays[key]
        return found

    def read_deviations(self, precision: str) -> Deviations:
        found: Deviations = json.loads(self.deviations(precision).read_text())
        return found


def write_exact(shelved: Shelved, lower: Lowering, work: Work) -> None:
    rate = gentle_rate(lower, work)
    found = gather(lower, work, covers="training", rate=rate, steps=shelved.effort.steps)
    found["rate"] = {"rate": np.float64(rate)}
    found["dropout"] = dropout_losses(lower, work, 4 * DROPOUT_STEPS)
    large = work.graph.stored_parameters > SMALL
    arrays = {
        f"{item}/{name}": np.asarray(
            value, np.float32 if large and np.ndim(value) and item != "outputs" else np.float64
        )
        for item, values in found.items()
        for name, value in values.items()
    }
    with atomic_write(shelved.exact, sync=False) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def write_deviations(shelved: Shelved, lower: Lowering, work: Work, precision: str) -> None:
    """The largest over the draws, each with errors of its own."""
    effort, exact, largest = shelved.effort, shelved.read_exact(), Deviations()
    for draw in range(effort.draws):
        run, steps = (
            replace(lower, draw=draw, precision=precision),
            effort.steps if draw < effort.trajectories else 1,
        )
        for item, values in gather(
            run, work, covers="training", rate=rate_of(exact), steps=steps
        ).items():
            kept = largest.setdefault(item, {})
            for name, value in values.items():
                found = deviation(value, exact[item][name])
                kept[name] = [max(pair) for pair in zip(found, kept.get(name, found), strict=True)]
    for item, draws in (("loss", effort.draws), ("trajectory", effort.trajectories)):
        # Single numbers, which few draws may all find near the truth by luck.
        largest[item] = {
            name: [(1 + 3 / draws) * off for off in pair] for name, pair in largest[item].items()
        }
    with atomic_write(shelved.deviations(precision), sync=False) as draft:
        draft.write_text(json.dumps(largest))


def rate_of(exact: Evidence) -> float:
    return float(exact["rate"]["rate"])
