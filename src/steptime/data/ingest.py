"""Real batches for timed steps: a set written out row by row, where a step finds the next batch by reading a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.data import pages, tiers
from steptime.data.sets import Samples, folder


@dataclass(frozen=True)
class Rows:
    """An array in a file, its rows one behind the other. The file has no name, so that nothing is left of it, however
    this process ends."""

    file: IO[bytes]
    kind: np.dtype[Any]
    shape: tuple[int, ...]  # of one row

    @classmethod
    def write(cls, place: Path, values: NDArray[Any]) -> Rows:
        file = tempfile.TemporaryFile(dir=place, buffering=0)  # noqa: SIM115 (`unpacked` closes it)
        np.ascontiguousarray(values).tofile(file)
        os.fsync(file.fileno())  # only what is on the disk can leave the page cache
        return cls(file, values.dtype, values.shape[1:])

    @property
    def number(self) -> int:
        return self.file.fileno()

    @property
    def row_bytes(self) -> int:
        return self.kind.itemsize * int(np.prod(self.shape))

    def read(self, first: int, length: int, *, forget: bool) -> NDArray[Any]:
        place, wanted = first * self.row_bytes, length * self.row_bytes
        content = os.pread(self.number, wanted, place)
        if len(content) != wanted:
            raise SteptimeError(
                f"The unpacked set ended {wanted - len(content)} bytes too early: is its tier sound?"
            )
        if forget:
            pages.drop(self.number, place, wanted)
        return np.frombuffer(content, self.kind).reshape(length, *self.shape)


class Ingest:
    """One part of a set in plain files, and the batches that are read from it, in order and again and again."""

    def __init__(
        self, samples: Samples, place: Path, case: Case, turn: tuple[int, int] = (0, 1)
    ) -> None:
        """`turn`: which of how many ranks; each reads batches of its own."""
        if case.batch_size > len(samples):
            raise SteptimeError(
                f"A batch of {case.batch_size} is more than the {len(samples)} samples of the set."
            )
        begin = time.perf_counter()
        self.parts = tuple(
            Rows.write(place, values) for values in (samples.values, samples.targets)
        )
        self.seconds = time.perf_counter() - begin
        self._prepare, self._case, self._turn, self._place = samples.prepare, case, turn, place
        self.samples, self.batches_read = len(samples), 0
        self._before = self._set_cache()

    def batches(self) -> Iterator[dict[str, Any]]:
        whole, size, forget = (
            self.samples // self._case.batch_size,
            self._case.batch_size,
            self._is_cold,
        )
        first, step = self._turn
        for number in count(first, step):
            values, targets = (
                part.read(number % whole * size, size, forget=forget) for part in self.parts
            )
            self.batches_read += 1
            yield {"input": self._prepare(values), "target": targets.astype(np.int64)}

    def told(self) -> dict[str, Any]:
        row_bytes = sum(part.row_bytes for part in self.parts)
        return {
            "on": tiers.describe(self._place),
            "samples": self.samples,
            "bytes": self.samples * row_bytes,
            "bytes_per_step": self._case.batch_size * row_bytes,
            "unpacking_seconds": self.seconds,
            "batches_read": self.batches_read,
            "order": "as the files have them",
            "prefetch": self._case.prefetch,
            "page_cache": {
                "asked": self._case.page_cache,
                "found": pages.word(self._before),
                "resident_before": self._before,
                "resident_after": self._resident_share(),
            },
        }

    @property
    def _is_cold(self) -> bool:
        return self._case.page_cache == "cold"

    def _set_cache(self) -> float | None:
        for part in self.parts:
            pages.drop(part.number) if self._is_cold else pages.warm(part.number)
        return self._resident_share()

    def _resident_share(self) -> float | None:
        return pages.resident_share(part.number for part in self.parts)


@contextlib.contextmanager
def unpacked(samples: Samples, case: Case, turn: tuple[int, int] = (0, 1)) -> Iterator[Ingest]:
    """Beside the set's own files, and so on the tier where those lie."""
    try:
        ingest = Ingest(samples, folder(), case, turn)
    except OSError as problem:
        raise SteptimeError(
            f"Real data are unpacked beside the set, but {folder()} cannot be written: {problem}. "
            "Name a tier of the machine file with staging."
        ) from None
    with contextlib.ExitStack() as closing:
        for part in ingest.parts:
            closing.enter_context(part.file)
        yield ingest
