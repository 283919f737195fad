"""Real batches for timed steps: a dataset unpacked into plain files that each step reads from."""

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
from steptime.core.errors import FULL_DISK, NoSpace, SteptimeError
from steptime.core.ranks import Ranks
from steptime.data import pages, tiers
from steptime.data.sets import Samples, data_folder


@dataclass(frozen=True)
class RowFile:
    """The rows of an array in a file without a name, so nothing is left when the process ends."""

    file: IO[bytes]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]  # of one row

    @classmethod
    def write(cls, target: Path, values: NDArray[Any]) -> RowFile:
        file = tempfile.TemporaryFile(dir=target, buffering=0)  # noqa: SIM115 (`unpack` closes it)
        np.ascontiguousarray(values).tofile(file)
        # Only pages that are already on the disk can leave the page cache.
        os.fsync(file.fileno())
        return cls(file, values.dtype, values.shape[1:])

    @property
    def descriptor(self) -> int:
        return self.file.fileno()

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape))

    def read(self, first: int, length: int, *, drop_pages: bool) -> NDArray[Any]:
        offset = first * self.row_bytes
        size = length * self.row_bytes
        content = os.pread(self.descriptor, size, offset)
        if len(content) != size:
            raise SteptimeError(
                f"The unpacked dataset ended {size - len(content)} bytes too early. "
                "Check the tier it lies on."
            )
        if drop_pages:
            pages.drop(self.descriptor, offset, size)
        return np.frombuffer(content, self.dtype).reshape(length, *self.shape)


class Ingest:
    """One split of a dataset in plain files, read batch by batch in order, over and over."""

    def __init__(
        self, samples: Samples, target: Path, case: Case, ranks: Ranks | None = None
    ) -> None:
        """`ranks`: each rank reads every size-th batch, beginning with its own number."""
        if case.batch_size > len(samples):
            raise SteptimeError(
                f"The batch size {case.batch_size} exceeds the {len(samples)} samples of the set."
            )
        begin = time.perf_counter()
        self.values = RowFile.write(target, samples.values)
        self.targets = RowFile.write(target, samples.targets)
        self.seconds = time.perf_counter() - begin
        self.files = (self.values, self.targets)
        self.samples = len(samples)
        self.batches_read = 0
        self._prepare = samples.prepare
        self._case = case
        self._ranks = ranks or Ranks()
        self._target = target
        self._resident_before = self._set_cache()

    def batches(self) -> Iterator[dict[str, Any]]:
        size = self._case.batch_size
        batches_per_epoch = self.samples // size
        drop_pages = self._is_cold
        # Rank r of n reads the batches r, r + n, r + 2n, … so that no two ranks share one.
        for number in count(self._ranks.rank, self._ranks.size):
            first = number % batches_per_epoch * size
            values = self.values.read(first, size, drop_pages=drop_pages)
            targets = self.targets.read(first, size, drop_pages=drop_pages)
            self.batches_read += 1
            yield {"input": self._prepare(values), "target": targets.astype(np.int64)}

    def facts(self) -> dict[str, Any]:
        row_bytes = sum(file.row_bytes for file in self.files)
        return {
            "on": tiers.describe(self._target),
            "samples": self.samples,
            "bytes": self.samples * row_bytes,
            "bytes_per_step": self._case.batch_size * row_bytes,
            "unpacking_seconds": self.seconds,
            "batches_read": self.batches_read,
            "order": "as the files have them",
            "prefetch": self._case.prefetch,
            "page_cache": {
                "requested": self._case.page_cache,
                "observed": pages.cache_state(self._resident_before),
                "resident_before": self._resident_before,
                "resident_after": self._resident_share(),
            },
        }

    def close(self) -> None:
        for file in self.files:
            file.file.close()

    @property
    def _is_cold(self) -> bool:
        return self._case.page_cache == "cold"

    def _set_cache(self) -> float | None:
        for file in self.files:
            if self._is_cold:
                pages.drop(file.descriptor)
            else:
                pages.warm(file.descriptor)
        return self._resident_share()

    def _resident_share(self) -> float | None:
        return pages.resident_share(file.descriptor for file in self.files)


@contextlib.contextmanager
def unpack(samples: Samples, case: Case, ranks: Ranks | None = None) -> Iterator[Ingest]:
    """Beside the dataset's own files, and so on the same tier."""
    try:
        ingest = Ingest(samples, data_folder(), case, ranks)
    except OSError as problem:
        # NumPy's own error about a full disk has no number.
        if problem.errno is None or problem.errno in FULL_DISK:
            raise NoSpace(
                f"There is no room for the unpacked data in {data_folder()}: {problem}. "
                "Make room, or name a larger tier of the machine file with staging."
            ) from None
        raise SteptimeError(
            f"Real data are unpacked beside the dataset, but {data_folder()} cannot be written: "
            f"{problem}. Name a tier of the machine file with staging."
        ) from None
    with contextlib.closing(ingest):
        yield ingest
