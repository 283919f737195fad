"""CUDA events as time stamps on the device's queue, taken from a pool: creating one costs more than recording it."""

from __future__ import annotations

import torch

POOL = 1024  # more than the samples of a block; a longer block creates further events


class Mark:
    """An event on loan: it goes back to the pool when nobody refers to it any more."""

    __slots__ = ("event", "pool")

    def __init__(self, event: torch.cuda.Event, pool: list[torch.cuda.Event]) -> None:
        self.event, self.pool = event, pool

    def __del__(self) -> None:
        self.pool.append(self.event)


class CudaTimer:
    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.current_stream(device)
        self.pool = [torch.cuda.Event(enable_timing=True) for _ in range(POOL)]
        for event in self.pool:
            event.record(self.stream)  # the driver makes an event at its first record
        torch.cuda.synchronize(device)

    def record(self) -> Mark:
        event = self.pool.pop() if self.pool else torch.cuda.Event(enable_timing=True)
        event.record(self.stream)
        return Mark(event, self.pool)

    def elapsed_ns(self, first: Mark, second: Mark) -> int:
        return round(first.event.elapsed_time(second.event) * 1e6)
