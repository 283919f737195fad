"""The reference's evidence, kept in files: exact arrays once, deviations of rounded runs once for each precision."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from steptime import shelf
from steptime.core.errors import SteptimeError
from steptime.graph import Work
from steptime.tasks.certify.evidence import DROPOUT_STEPS, Evidence, Lowering, dropout_losses, gather, gentle_rate
from steptime.tasks.certify.judge import Deviations, deviation

EVIDENCE = 4  # counts up when what is gathered changes
LONE = ("loss", "trajectory")  # single numbers, which few draws may all find near the truth by luck
SMALL = 4_000_000  # weights: below it they are kept in float64


class Shelved:
    """Where one network's reference lies. The name is a digest of all that it depends on, its own code included."""

    def __init__(self, folder: Path, work: Work, framework: str) -> None:
        source = shelf.source("frameworks", framework)
        code = sorted(path.read_bytes() for path in source.parent.glob("*.py")) if source else []
        settings = [EVIDENCE, work.graph.to_dict()["layers"], asdict(work.optimizer)]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for text in (*code, *(np.ascontiguousarray(array).tobytes() for array in work.batch.values())):
            digest.update(text)
        self.name = f"{work.graph.fingerprint}-{digest.hexdigest()[:12]}"
        self.folder = folder
        self.exact = folder / f"{self.name}.npz"

    def deviations(self, precision: str, draws: int) -> Path:
        return self.folder / f"{self.name}-{precision}-{draws}.json"

    def read_exact(self) -> Evidence:
        if not self.exact.exists():
            raise SteptimeError(f"There is no reference {self.exact}; `steptime certify` computes it first.")
        found: Evidence = {}
        with np.load(self.exact) as arrays:
            for key in arrays.files:
                item, _, name = key.partition("/")
                found.setdefault(item, {})[name] = arrays[key]
        return found

    def read_deviations(self, precision: str, draws: int) -> Deviations:
        found: Deviations = json.loads(self.deviations(precision, draws).read_text())
        return found


def write_exact(path: Path, lower: Lowering, work: Work) -> None:
    rate = gentle_rate(lower, work)
    found = gather(lower, work, covers="training", rate=rate)
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
    with whole(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def write_deviations(path: Path, runs: list[Lowering], work: Work, exact: Evidence) -> None:
    """The largest over the runs, each with errors of its own."""
    largest: Deviations = {}
    for lower in runs:
        for item, values in gather(lower, work, covers="training", rate=rate_of(exact)).items():
            kept = largest.setdefault(item, {})
            for name, value in values.items():
                found = deviation(value, exact[item][name])
                kept[name] = [max(pair) for pair in zip(found, kept.get(name, found), strict=True)]
    for item in LONE:
        largest[item] = {name: [(1 + 3 / len(runs)) * off for off in pair] for name, pair in largest[item].items()}
    with whole(path) as draft:
        draft.write_text(json.dumps(largest))


def rate_of(exact: Evidence) -> float:
    return float(exact["rate"]["rate"])


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A reader sees a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
