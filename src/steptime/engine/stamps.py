"""Buffers for stamps: chunks of int64 that are allocated between blocks only."""

from __future__ import annotations

from array import array

CHUNK = 65_536


class Stamps:
    """Absolute nanoseconds, one per sample. Writing into a memoryview keeps no int object alive."""

    def __init__(self, chunk: int = CHUNK) -> None:
        self._chunk = chunk
        self._full: list[array[int]] = []
        self._open(chunk)

    def __len__(self) -> int:
        return sum(map(len, self._full)) + self.used

    def room(self, count: int) -> memoryview:
        """The current chunk, with room for `count` more after `used`. Call between blocks only."""
        if self.used + count > len(self._stamps):
            self._full.append(self._stamps[: self.used])
            self._open(max(self._chunk, count))
        return self.view

    def values(self) -> list[int]:
        stamps: list[int] = []
        for chunk in self._full:
            stamps += chunk
        stamps += self._stamps[: self.used]
        return stamps

    def _open(self, length: int) -> None:
        # Copied from zeros, not only reserved, so that the page faults happen here and not in
        # the first timed steps.
        self._stamps = array("q", bytes(8 * length))
        self.view = memoryview(self._stamps)
        self.used = 0
