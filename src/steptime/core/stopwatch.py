"""Where the time of a process goes, from its start."""

from __future__ import annotations

import time


class Stopwatch:
    """Each lap is the time since the lap before."""

    def __init__(self, elapsed_seconds: float = 0.0) -> None:
        """`elapsed_seconds`: how long ago the first lap began."""
        # On the clock of time.perf_counter.
        self.began = time.perf_counter() - elapsed_seconds
        self.seconds: dict[str, float] = {}
        self._lap_began = self.began

    def lap(self, name: str) -> float:
        """End a lap. Several laps of one name add up."""
        now = time.perf_counter()
        lap_seconds = now - self._lap_began
        self.seconds[name] = self.seconds.get(name, 0.0) + lap_seconds
        self._lap_began = now
        return lap_seconds
