"""Every kind of file that a command reads, and the commands that read it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from mutations import mutate, reseal
from odd_inputs import REPLACEMENTS, damage, replace

SHOW_STORE = ("list results", "show RESULT", "run plan.toml --dry-run", "store check")


@dataclass(frozen=True)
class Target:
    """Files, as a pattern below the folder of a workbench, and what reads them."""

    pattern: str
    commands: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()  # of the guide
    machine_file: str = ""  # what $STEPTIME_MACHINE names
    count: int = 24  # mutations


TARGETS = (
    Target("plan.toml", ("run plan.toml --dry-run", "scaling plan.toml", "submit plan.toml")),
    Target("dlbs-plan.json", ("run dlbs-plan.json --dry-run", "show dlbs-plan.json")),
    Target("psc-machine.toml", ("submit psc --machine psc-machine.toml --dry-run",)),
    Target(
        "psc-machine.toml",
        ("machine --no-peaks", "run plan.toml --again"),
        machine_file="psc-machine.toml",
    ),
    Target("machine.toml", ("machine --trust", "machine --no-peaks --json")),
    Target("config/steptime/machine.toml", ("machine --no-peaks",)),
    Target("config/steptime/trusted-machine-files", ("machine --no-peaks", "machine --trust")),
    # A process runs the file.
    Target("own.py", ("show own.py:tiny", "certify own.py:tiny --framework numpy"), count=10),
    Target("own.py", ("run --workload own.py:tiny --dry-run",), count=10),
    Target("foreign/**/*", ("import FILE --rows", "import FILE --json"), count=120),
    Target("results/STORE.json", (*SHOW_STORE, "store merge other", "store compact"), ("/runs",)),
    Target("results/journal/*/*/*/*.jsonl", (*SHOW_STORE, "compare RESULT OTHER"), ("/runs",)),
    Target(
        "results/parts/*.parquet",
        (*SHOW_STORE, "certify mnist-mlp --framework numpy"),
        ("/certificates", "/run/RESULT"),
        count=16,
    ),
    Target("results/imports/*", ("export psc -o NEW", "store check"), ("/runs",), count=12),
    Target(
        "results/blobs/*/*",
        ("store check", "store merge other"),
        ("/run/PROFILE/trace",),
        count=16,
    ),
    Target(
        "results/machines/*.json",
        ("run plan.toml --dry-run", "run plan.toml --again"),
        ("/machines", "/run/RESULT"),
        count=16,
    ),
    Target(
        "results/campaigns/*/campaign.json",
        ("status", "collect", "cancel"),
        ("/campaigns",),
        count=16,
    ),
    Target(
        "results/campaigns/*/arrays/*/index.json",
        ("status", "collect", "cancel"),
        ("/campaigns",),
        count=16,
    ),
    Target("old/journal/*/*/*/*.jsonl", ("store convert old NEW",), count=12),
    Target("old/STORE.json", ("store convert old NEW", "store merge old"), count=12),
    Target("other/machines/*.json", ("store merge other",), count=12),
    Target("other/journal/*/*/*/*.jsonl", ("store merge other",), count=12),
)


def mutate_file(path: Path, rng: random.Random) -> None:
    """Change its content, or put something else in its place."""
    if rng.random() < 0.2:
        replace(path, rng.choice(REPLACEMENTS), rng)
        return
    data = path.read_bytes()
    if path.match("journal/*/*/*/*.jsonl") and rng.random() < 0.6:
        journal = mutate(data, rng)
        path.write_bytes(reseal(journal) if rng.random() < 0.5 else journal)
    else:
        path.write_bytes(damage(data, rng))
