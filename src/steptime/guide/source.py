"""Where the guide's answers come from: a store, and the index that is made of it and follows it."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from steptime.analysis.certificates import Certificate, certificate
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.guide.index import Index
from steptime.guide.rows import Row, foreign_row, row
from steptime.store.folder import FolderStore
from steptime.store.imports import foreign_runs

FRESH_SECONDS = 5.0  # looking for new files is cheap, but not for every click


@dataclass
class Source:
    store: FolderStore
    index: Index = field(default_factory=Index)
    runs: dict[str, Record | ForeignRun] = field(default_factory=dict)  # by the id of their row
    broken: set[str] = field(default_factory=set)  # ids of those that no result follows from
    looked: float = 0.0
    busy: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> None:
        """Takes in what is new. A record's row goes by its first attempt: it stays the same while the session grows."""
        with self.busy:
            if time.monotonic() - self.looked < FRESH_SECONDS:
                return
            records = {record.attempts[0].id: record for record in self.store.records()}
            foreign = {run.id: run for run in foreign_runs(self.store.path)} if not self.looked else {}
            known: dict[str, Record | ForeignRun] = {**records, **foreign}
            news = {name: found for name, found in known.items() if self.runs.get(name) != found}
            if news:
                self.index.add(made for one in news.values() if (made := self._row(one)))
                self.index.summarise()
                self.runs.update(news)
            self.looked = time.monotonic()

    def _row(self, one: Record | ForeignRun) -> Row | None:
        """One record that makes no sense must not hide all others."""
        try:
            return row(one) if isinstance(one, Record) else foreign_row(one)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
            name = one.attempts[0].id if isinstance(one, Record) else one.id
            self.broken.add(name)
            self.store.problems.append(f"{name}: no result follows from it ({problem!r}); it is left as it is.")
            return None

    def certificates(self) -> list[Certificate]:
        found = [certificate(attempt) for attempt in self.store.attempts("certify")]
        return [one for one in found if one is not None]

    def machines(self) -> list[dict[str, Any]]:
        """Those whose roofs were measured into this store."""
        found = []
        for path in sorted(self.store.path.glob("machines/*.json")):
            try:
                found.append({"fingerprint": path.stem, **json.loads(path.read_text())})
            except (OSError, ValueError):
                self.store.problems.append(f"{path}: not readable; it is left as it is.")
        return found

    def roof(self, machine: dict[str, Any], device: str, precision: str) -> float | None:
        """FLOP/s that this machine was measured to reach in this number format; None: nobody measured."""
        found = next((one for one in self.machines() if one["fingerprint"] == machine.get("fingerprint")), {})
        try:
            return float(found["roofs"][device]["roofs"][precision]["flops_per_second"])
        except (KeyError, TypeError, ValueError):
            return None
