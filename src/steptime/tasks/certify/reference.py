"""The reference's evidence in files: exact arrays, and deviations for each precision."""

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
    gather_evidence,
    gentle_rate,
)
from steptime.tasks.certify.judge import Deviation, Deviations, deviation

# Increase it when the gathered evidence changes.
EVIDENCE = 5
# A network with fewer weights is kept in float64.
SMALL = 4_000_000


@dataclass(frozen=True)
class Effort:
    """How much is computed for one network: less if one pass through it takes long."""

    # Length of the trajectory, for the reference and all frameworks.
    steps: int = STEPS
    # Draws of rounding errors, each up to the first step.
    draws: int = 3
    # How many of these draws go on to the last step.
    trajectories: int = 3

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Effort:
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in options.items() if name in names})


class ReferenceFiles:
    """The files of one network's reference.

    Their name is a digest of all that they depend on, including the reference's code."""

    def __init__(self, folder: Path, work: Work, framework: str, effort: Effort) -> None:
        settings = [EVIDENCE, effort.steps, work.graph.to_dict()["layers"], asdict(work.optimizer)]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        source = plugins.source("frameworks", framework)
        if source:
            for code in sorted(path.read_bytes() for path in source.parent.glob("*.py")):
                digest.update(code)
        for array in work.batch.values():
            digest.update(np.ascontiguousarray(array).tobytes())
        self.name = f"{work.graph.fingerprint}-{digest.hexdigest()[:12]}"
        self.folder = folder
        self.effort = effort
        self.exact = folder / f"{self.name}.npz"

    def deviations(self, precision: str) -> Path:
        draws = f"{self.effort.draws}-{self.effort.trajectories}"
        return self.folder / f"{self.name}-{precision}-{draws}.json"

    def read_exact(self) -> Evidence:
        if not self.exact.exists():
            raise SteptimeError(
                f"There is no reference {self.exact}; `steptime certify` computes it first."
            )
        evidence: Evidence = {}
        with np.load(self.exact) as arrays:
            for key in arrays.files:
                item, _, name = key.partition("/")
                evidence.setdefault(item, {})[name] = arrays[key]
        return evidence

    def read_deviations(self, precision: str) -> Deviations:
        content = json.loads(self.deviations(precision).read_text())
        deviations: Deviations = {}
        for item, values in content.items():
            deviations[item] = {name: Deviation(*pair) for name, pair in values.items()}
        return deviations


def write_exact(files: ReferenceFiles, lower: Lowering, work: Work) -> None:
    rate = gentle_rate(lower, work)
    evidence = gather_evidence(lower, work, covers="training", rate=rate, steps=files.effort.steps)
    evidence["rate"] = {"rate": np.float64(rate)}
    evidence["dropout"] = dropout_losses(lower, work, 4 * DROPOUT_STEPS)
    is_large = work.graph.stored_parameters > SMALL
    arrays = {}
    for item, values in evidence.items():
        for name, value in values.items():
            is_compact = is_large and np.ndim(value) > 0 and item != "outputs"
            arrays[f"{item}/{name}"] = np.asarray(value, np.float32 if is_compact else np.float64)
    with atomic_write(files.exact, sync=False) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def write_deviations(files: ReferenceFiles, lower: Lowering, work: Work, precision: str) -> None:
    """The largest over the draws, each with errors of its own."""
    effort = files.effort
    exact = files.read_exact()
    rate = reference_rate(exact)
    largest: Deviations = {}
    for draw in range(effort.draws):
        rounded = replace(lower, draw=draw, precision=precision)
        steps = effort.steps if draw < effort.trajectories else 1
        evidence = gather_evidence(rounded, work, covers="training", rate=rate, steps=steps)
        _add_draw(largest, evidence, exact)
    # Single numbers, which a few draws may all find near the truth by luck.
    _scale_deviations(largest["loss"], 1 + 3 / effort.draws)
    _scale_deviations(largest["trajectory"], 1 + 3 / effort.trajectories)
    with atomic_write(files.deviations(precision), sync=False) as draft:
        draft.write_text(json.dumps(largest))


def _add_draw(largest: Deviations, evidence: Evidence, exact: Evidence) -> None:
    for item, values in evidence.items():
        item_largest = largest.setdefault(item, {})
        for name, value in values.items():
            new = deviation(value, exact[item][name])
            old = item_largest.get(name, new)
            item_largest[name] = Deviation(max(new.largest, old.largest), max(new.rms, old.rms))


def _scale_deviations(deviations: dict[str, Deviation], factor: float) -> None:
    for name, (largest, rms) in deviations.items():
        deviations[name] = Deviation(factor * largest, factor * rms)


def reference_rate(exact: Evidence) -> float:
    return float(exact["rate"]["rate"])
