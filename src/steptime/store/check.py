"""Read everything in a store and report what is there and what is wrong. Changes nothing."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt
from steptime.store import checksums, journals, parts
from steptime.store.blobs import Blobs
from steptime.store.contradictions import find_contradictions
from steptime.store.folder import FolderStore
from steptime.store.imports import PATTERN as IMPORTS
from steptime.store.imports import foreign_runs
from steptime.store.journals import StoredJournal

# Fewer samples may be equal by chance if the clock is coarse.
LEAST_SAMPLES = 10


@dataclass
class CheckReport:
    # Ended ones, each counted once.
    attempts: int = 0
    # By state.
    journals: Counter[str] = field(default_factory=Counter)
    part_files: Counter[str] = field(default_factory=Counter)
    # Attempts of older versions: damage inside their lines may go unnoticed.
    without_checksums: int = 0
    # The same text in a second file is harmless: one of them is read.
    duplicates: int = 0
    blobs: Counter[str] = field(default_factory=Counter)
    imports: Counter[str] = field(default_factory=Counter)
    # Left by killed writers; no reader opens them.
    drafts: int = 0
    wrong: list[str] = field(default_factory=list)


def check(store: FolderStore) -> CheckReport:
    if not store.path.is_dir():
        raise SteptimeError(f"There is no store {store.path}. Name one with --store.")
    report = CheckReport()
    for state in (journals.ENDED, *journals.OTHER):
        report.journals[state] = 0
    _check_attempts(store, report)
    _check_blobs(store, report)
    _check_imports(store, report)
    report.drafts = sum(1 for _ in store.path.rglob(".*.draft"))
    return report


def _check_attempts(store: FolderStore, report: CheckReport) -> None:
    seen = _Seen(report)
    for journal in chain(_ended_journals(store, report), _part_journals(store, report)):
        seen.check_identity(journal)
    report.attempts = len(seen.journals)


class _Seen:
    """What earlier files said. Small, because a store may hold a million attempts."""

    def __init__(self, report: CheckReport) -> None:
        self._report = report
        self.journals: dict[str, tuple[bytes, Path]] = {}
        # By what no two attempts share.
        self._samples: dict[bytes, str] = {}
        self._numbers: dict[tuple[str, ...], str] = {}
        self._machines: dict[tuple[str, ...], tuple[str, str]] = {}

    def check_identity(self, journal: StoredJournal) -> None:
        digest = hashlib.sha256(journal.text.encode()).digest()
        if journal.id not in self.journals:
            self.journals[journal.id] = digest, journal.path
            if not checksums.has_checksums(journal.text.encode().split(b"\n")):
                self._report.without_checksums += 1
            self._check_content(journal)
            return
        other_digest, other_path = self.journals[journal.id]
        if other_digest != digest:
            problem = f"{other_path} has another text for the same id, {journal.id}."
            self._report.wrong.append(f"{journal.path}: {problem}")
        elif journal.path.suffix == other_path.suffix == ".jsonl":
            # A compactor that was killed leaves a journal and a part, never two journals.
            self._add(journal, f"a copy of {other_path}. Remove one of them")
        else:
            self._report.duplicates += 1

    def _add(self, journal: StoredJournal, problem: str) -> None:
        self._report.wrong.append(f"{_name(journal)}: {problem}.")

    def _check_content(self, journal: StoredJournal) -> None:
        attempt = journal.attempt
        assert attempt is not None
        if journal.path.suffix == ".jsonl" and journal.path.stem != attempt.id:
            self._add(journal, f"it holds the attempt {attempt.id}: a copy or renamed. Remove it")
        try:
            for contradiction in find_contradictions(attempt):
                self._add(journal, f"{contradiction}. Do not use it; measure again")
        except (TypeError, ValueError, IndexError) as problem:
            self._add(journal, f"its values are not usable ({problem}). Measure again")
            return
        self._check_samples(journal, attempt)
        self._check_number(journal, attempt)
        self._check_machine(journal, attempt)

    def _check_samples(self, journal: StoredJournal, attempt: Attempt) -> None:
        """Times in nanoseconds never repeat by chance."""
        measurement = attempt.measurement
        if measurement is None or len(measurement.stamps) <= LEAST_SAMPLES:
            return
        deltas = array("q", measurement.samples_ns)
        other = self._samples.setdefault(hashlib.sha256(deltas.tobytes()).digest(), attempt.id)
        if other != attempt.id:
            self._add(journal, f"it has the same samples as {other}: one is a copy. Remove it")

    def _check_number(self, journal: StoredJournal, attempt: Attempt) -> None:
        # Both partners of a pair may have the same case.
        if attempt.measurement is None or attempt.pair:
            return
        number = (attempt.session, attempt.case.key, attempt.task, str(attempt.process))
        other = self._numbers.setdefault(number, attempt.id)
        if other != attempt.id:
            same = f"process {attempt.process} of its case and session, as {other} is"
            self._add(journal, f"it is {same}. One of them belongs elsewhere; remove it")

    def _check_machine(self, journal: StoredJournal, attempt: Attempt) -> None:
        """A session may use several types of nodes, but each case runs on one."""
        fingerprint = str(attempt.machine.get("fingerprint") or "")
        if not fingerprint:
            return
        group = (attempt.session, attempt.case.node_type)
        first, other = self._machines.setdefault(group, (fingerprint, attempt.id))
        if first != fingerprint:
            here = f"its machine is {fingerprint}, that of {other} in the same session is {first}"
            self._add(journal, f"{here}. Measure one session on one machine")


def _name(journal: StoredJournal) -> str:
    """Of a part, also which of its journals."""
    if journal.path.suffix == ".jsonl":
        return str(journal.path)
    return f"{journal.path} ({journal.id})"


def _ended_journals(store: FolderStore, report: CheckReport) -> Iterator[StoredJournal]:
    for journal in journals.scan(journals.paths(store.path)):
        report.journals[journal.state] += 1
        if journal.problem:
            report.wrong.append(journal.problem)
        if journal.state == journals.ENDED:
            yield journal


def _part_journals(store: FolderStore, report: CheckReport) -> Iterator[StoredJournal]:
    report.part_files.update(files=0, attempts=0, damaged=0)
    for path in store.parts.paths():
        report.part_files["files"] += 1
        try:
            texts = parts.texts(path)
            for journal in parts.stored_journals(path, texts, report.wrong):
                report.part_files["attempts"] += 1
                if journal.id not in texts:
                    problem = f"{path}: a row holds {journal.id} under another id."
                    report.wrong.append(f"{problem} Restore the part from a copy.")
                yield journal
        except parts.DamagedPart as problem:
            report.part_files["damaged"] += 1
            report.wrong.append(str(problem))


def _check_blobs(store: FolderStore, report: CheckReport) -> None:
    blobs = Blobs(store.path)
    names = list(blobs.names())
    damaged = blobs.check()
    size = sum(blobs.path(name).stat().st_size for name in names)
    report.blobs.update(files=len(names), bytes=size, damaged=len(damaged))
    report.wrong += damaged


def _check_imports(store: FolderStore, report: CheckReport) -> None:
    problems: list[str] = []
    rows = sum(1 for _ in foreign_runs(store.path, problems))
    files = sorted(store.path.glob(IMPORTS))
    blobs = Blobs(store.path)
    for file in files:
        # Only the original proves the rows that were read from it.
        if not blobs.path(file.stem).is_file():
            problems.append(f"{file}: its original is missing; import the original again.")
    report.imports.update(files=len(files), rows=rows, damaged=len(problems))
    report.wrong += problems
