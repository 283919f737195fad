"""Where stamps are written while the program runs: chunks of int64 that are made between blocks only."""

from __future__ import annotations

from array import array

CHUNK = 65_536


class Stamps:
    """Absolute nanoseconds, one per sample. A memoryview takes an int without making an object that stays."""

    def __init__(self, chunk: int = CHUNK) -> None:
        self._chunk = chunk
        self._full: list[array[int]] = []
        self._open(chunk)

    def __len__(self) -> int:
        return sum(map(len, self._full)) + self.used

    def room(self, count: int) -> memoryview:
        """The current chunk, with place for `count` more from `used` on. Call at a block's start, never inside it."""
        if self.used + count > len(self._stamps):
            self._full.append(self._stamps[: self.used])
            self._open(max(self._chunk, count))
        return self.view

    def values(self) -> list[int]:
        return [stamp for part in (*self._full, self._stamps[: self.used]) for stamp in part]

    def _open(self, length: int) -> None:
        # Copied from zeros, not only reserved: the pages are touched here and not under the first stamps.
        self._stamps = array("q", bytes(8 * length))
        self.view = memoryview(self._stamps)
        self.used = 0
