"""Real journals with one thing changed: a value, a missing name, a line too many, a flipped bit."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steptime.core.record import Attempt
from steptime.store import checksums, parts
from steptime.store.convert import convert
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

FIXTURES = Path(__file__).parent / "fixtures"
TASKS = ("measure", "certify", "profile", "train")
NESTED: Any = 0
for _ in range(300):
    NESTED = [NESTED]
ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    3_000_000_000,
    10**40,
    -(2**70),
    1e308,
    0.5,
    float("nan"),
    float("-inf"),
    "",
    "x",
    "1",
    "a\0b",
    "\ud800",
    "x" * 100_000,
    "</script>",
    [],
    [None],
    [[1], {}],
    ["x", 1],
    {},
    {"x": []},
    {"": {"deeper": None}},
    NESTED,
]
MONITOR = {
    "interval_seconds": 0.5,
    "first_ns": 0,
    "node": "n0",
    "cost": {"cpu_seconds": 0.1, "share": 0.01},
    "columns": {
        "seconds": [0.5, 1.0, 1.5],
        "own_cpu_seconds": [0.1, 0.1, 0.1],
        "cpu_seconds": [0.2, 0.5, 0.9],
        "memory_bytes": [1000, 2000, 1500],
        "apart": [None, 1, 1],
    },
}
STAGING = {
    "bytes": 1000,
    "bytes_per_second": 1e6,
    "tier": "scratch",
    "on": {"kind": "nvme"},
}
TOP1 = {"metric": "top-1 accuracy", "value": 0.5, "interval": [0.4, 0.6], "samples": 100}


def real_journals(folder: Path) -> list[bytes]:
    """One journal of each kind that the stores in `fixtures` have, with a new id."""
    convert(FIXTURES / "store-v1", folder / "converted")
    by_kind: dict[tuple[object, ...], bytes] = {}
    for store in (FolderStore(folder / "converted"), FolderStore(FIXTURES / "real-store")):
        texts = _texts(store)
        for task in TASKS:
            for attempt in store.attempts(task):
                by_kind.setdefault(_kind(attempt), texts[attempt.id].encode())
    return [_enrich(journal) for journal in by_kind.values()]


def _texts(store: FolderStore) -> dict[str, str]:
    texts = {path.stem: path.read_text() for path in store.path.glob("journal/*/*/*/*.jsonl")}
    for path in store.parts.paths():
        texts |= parts.texts(path)
    return texts


def _kind(attempt: Attempt) -> tuple[object, ...]:
    case = attempt.case
    outcome = (bool(attempt.failure), bool(attempt.measurement), bool(attempt.pair))
    return (attempt.task, case.device, case.exchange, case.data, *attempt.findings, *outcome)


def _enrich(journal: bytes) -> bytes:
    """With what a monitor and a staging tier report, which no stored journal has."""
    lines = parse(journal)
    if lines[-1]["measurement"]:
        lines[-1]["findings"] |= {"monitor": MONITOR, "staging": STAGING, "task": TOP1}
    return dump(lines)


def parse(journal: bytes) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in journal.splitlines()]
    for line in lines:
        line.pop("checksum", None)
    return lines


def dump(lines: list[Any]) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def reseal(journal: bytes) -> bytes:
    """The lines with the checksums that their writer would have given them."""
    sealed = []
    previous = ""
    for line in journal.splitlines():
        if checksums.read_checksum(line):
            line = line[: -checksums.SUFFIX_BYTES] + b"}"
        line, previous = checksums.seal(line, previous)
        sealed.append(line + b"\n")
    return b"".join(sealed)


def unseal(path: Path) -> None:
    """Make a journal what versions without checksums wrote."""
    path.write_bytes(re.sub(checksums.SUFFIX, b"}", path.read_bytes()))


def edit(path: Path, old: str, new: str) -> None:
    """Replace some text, as if the writer had written the new text."""
    path.write_bytes(reseal(path.read_text().replace(old, new).encode()))


def mutate(journal: bytes, rng: random.Random) -> bytes:
    """The journal under a new id, with one random change of its content."""
    lines = parse(journal)
    lines[0]["id"] = uuid7()
    if rng.random() < 0.1:
        number = rng.randrange(len(lines))
        change = rng.choice(("drop", "repeat", "odd"))
        if change == "drop":
            del lines[number]
        elif change == "repeat":
            lines.insert(rng.randrange(len(lines)), lines[number])
        else:
            lines.insert(number, rng.choice(ODD_VALUES))
        return dump(lines)
    # Most lines hold samples, so the line is chosen first and the value in it afterwards.
    slots = list(_slots(rng.choice([lines[0], lines[1], lines[-1], rng.choice(lines)])))
    holder, name = rng.choice(slots)
    if name != "id":
        if isinstance(holder, dict) and rng.random() < 0.15:
            del holder[name]
        else:
            holder[name] = rng.choice(ODD_VALUES)
    return dump(lines)


def _slots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every name of an object and every index of a list, at any depth."""
    names: Any = ()
    if isinstance(value, dict):
        names = list(value)
    elif isinstance(value, list):
        names = range(min(len(value), 3))
    for name in names:
        yield value, name
        yield from _slots(value[name])
