"""CUDA events as time stamps on the device's queue.

They come from a pool, because creating one costs more than recording it."""

from __future__ import annotations

import torch

# More than the samples of a block; a longer block creates further events.
POOL = 1024


class Mark:
    """An event that returns to the pool when nothing refers to the mark any more."""

    __slots__ = ("event", "pool")

    def __init__(self, event: torch.cuda.Event, pool: list[torch.cuda.Event]) -> None:
        self.event = event
        self.pool = pool

    def __del__(self) -> None:
        self.pool.append(self.event)


class CudaTimer:
    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.current_stream(device)
        self.pool = [torch.cuda.Event(enable_timing=True) for _ in range(POOL)]
        for event in self.pool:
            # The driver creates an event when it is first recorded.
            event.record(self.stream)
        torch.cuda.synchronize(device)

    def record(self) -> Mark:
        event = self.pool.pop() if self.pool else torch.cuda.Event(enable_timing=True)
        event.record(self.stream)
        return Mark(event, self.pool)

    def elapsed_ns(self, first: Mark, second: Mark) -> int:
        return round(first.event.elapsed_time(second.event) * 1e6)
