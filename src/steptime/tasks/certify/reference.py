"""The reference's evidence in files: exact arrays, and deviations for each precision."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from steptime import plugins
from steptime.core.errors import SteptimeError
from steptime.store.atomic import atomic_write
from steptime.tasks.certify import evidence as evidence_module
from steptime.tasks.certify import probes as probes_module
from steptime.tasks.certify.evidence import (
    DROPOUT_STEPS,
    Evidence,
    Lowering,
    dropout_losses,
    gather_evidence,
    gentle_rate,
)
from steptime.tasks.certify.judge import LOSSES, Deviation, Deviations, deviation
from steptime.tasks.certify.studies import Study

# A network with fewer weights is kept in float64.
SMALL = 4_000_000
# Sources that decide what is gathered; the reference's own are in its digest.
SOURCES = (evidence_module, probes_module)


class ReferenceFiles:
    """The files of one network's reference.

    Their name is a digest of all that they depend on, including the reference's code."""

    def __init__(self, folder: Path, study: Study, framework: str, seed: int) -> None:
        work = study.work
        settings = [
            study.effort,
            study.is_complete,
            study.has_gradients,
            seed,
            work.graph.to_dict()["layers"],
            asdict(work.optimizer),
        ]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(plugins.program_digest(framework).encode())
        for module in SOURCES:
            digest.update(Path(str(module.__file__)).read_bytes())
        for batch in (work.batch, study.second):
            for array in batch.values():
                digest.update(np.ascontiguousarray(array).tobytes())
        self.name = f"{work.graph.fingerprint}-{digest.hexdigest()[:12]}"
        self.folder = folder
        self.study = study
        self.exact = folder / f"{self.name}.npz"

    @property
    def is_compact(self) -> bool:
        """Whether large arrays are kept in float32."""
        return self.study.work.graph.stored_parameters > SMALL

    def deviations(self, precision: str) -> Path:
        return self.folder / f"{self.name}-{precision}.json"

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


def write_exact(files: ReferenceFiles, lower: Lowering) -> None:
    study = files.study
    work = study.work
    # Outputs alone need no rate.
    rate = gentle_rate(lower, work) if study.has_gradients else 0.0
    steps = study.effort.steps
    evidence = gather_evidence(lower, study, covers="training", rate=rate, steps=steps)
    evidence["rate"] = {"rate": np.float64(rate)}
    if study.is_complete:
        evidence["dropout"] = dropout_losses(lower, work, 4 * DROPOUT_STEPS)
    arrays = {}
    for item, values in evidence.items():
        for name, value in values.items():
            is_compact = files.is_compact and np.ndim(value) > 0 and item != "outputs"
            arrays[f"{item}/{name}"] = np.asarray(value, np.float32 if is_compact else np.float64)
    with atomic_write(files.exact, sync=False) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def write_deviations(files: ReferenceFiles, lower: Lowering, precision: str) -> None:
    """The largest over the draws, each with errors of its own."""
    study = files.study
    effort = study.effort
    exact = files.read_exact()
    rate = reference_rate(exact)
    largest: Deviations = {}
    for draw in range(effort.draws):
        rounded = replace(lower, draw=draw, precision=precision)
        steps = effort.steps if draw < effort.trajectories else 1
        evidence = gather_evidence(rounded, study, covers="training", rate=rate, steps=steps)
        _add_draw(largest, evidence, exact)
    # Single numbers, which a few draws may all find near the truth by luck.
    for item in LOSSES:
        draws = effort.trajectories if item == "trajectory" else effort.draws
        _scale_deviations(largest.get(item, {}), 1 + 3 / draws)
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
