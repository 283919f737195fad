"""Runs blocks and writes down what the clocks and side channels say. Decides nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steptime.core.measurement import Block
from steptime.core.program import Program
from steptime.engine.channels import Channels, Reading, difference
from steptime.engine.clock import Clock
from steptime.engine.gpu import Gpu
from steptime.engine.stamps import Stamps
from steptime.engine.timing import Loop


class Stretch(NamedTuple):
    """One run of a loop and the wait behind it. A block is one, or a few when the first turns out too short."""

    total_ns: int
    drain_ns: int  # the wait
    lead_ns: int  # the first sample's dispatch: the queue was empty, so nothing held the host back


class Entry(NamedTuple):
    """A block as it is written between two blocks: what takes time to work out is left for later."""

    samples: int
    first_ns: int  # the end of the block before: its bookkeeping is in this block's first sample
    last_ns: int
    stretch_ns: int  # its stretches, without the bookkeeping before them
    drain_ns: int
    lead_ns: int
    device_ns: int
    idle_ns: int  # before first_ns, with the clock stopped
    before: Reading
    after: Reading
    compilations: int
    gpu: dict[str, float] | None


class Recorder:
    """Stamps tile the clock from `start` on. From `pause` to the next block it stands still, and that is recorded."""

    def __init__(
        self,
        program: Program,
        loop: Loop,
        clock: Clock = time.perf_counter_ns,
        gpu: Gpu | None = None,
    ) -> None:
        self._program, self._loop, self._clock, self._gpu = program, loop, clock, gpu
        self.agree: Callable[[Any], Any] | None = (
            None  # several ranks run the same number of samples
        )
        self.channels = Channels(clock)
        self.entries: list[Entry] = []
        self._stamps = Stamps()
        self._device_ns: list[int] = []
        self.samples = self._idle_ns = 0
        self._paused = False

    def start(self) -> None:
        self.channels.__enter__()
        self._reading = self.channels.read()
        self._compilations = self._program.compilations()
        self.start_ns = self._last_ns = self._clock()

    def pause(self) -> None:
        self._paused = True

    def block(self, count: int, least_ns: int = 0) -> Entry:
        """At least `count` samples, and more until the block has lasted `least_ns`."""
        idle_ns = self._resume() if self._paused else 0
        view = self._stamps.room(2 * count)
        first, first_ns, first_device = self._stamps.used, self._last_ns, len(self._device_ns)
        stretches = []
        while count:
            stretches.append(self._stretch(view, count))
            done, left = self._stamps.used - first, len(view) - self._stamps.used
            elapsed_ns = self._last_ns - first_ns
            count = (
                min(left, math.ceil((least_ns / max(1, elapsed_ns) - 1) * done))
                if elapsed_ns < least_ns
                else 0
            )
            count = count if self.agree is None else self.agree(count)
        return self._write(
            samples=done,
            first_ns=first_ns,
            last_ns=self._last_ns,
            stretch_ns=sum(stretch.total_ns for stretch in stretches),
            drain_ns=sum(stretch.drain_ns for stretch in stretches),
            lead_ns=stretches[0].lead_ns,
            device_ns=sum(self._device_ns[first_device:]),
            idle_ns=idle_ns,
        )

    @property
    def seconds(self) -> float:
        """From the first stamp to the last, by the clock that stands still in pauses."""
        return (self._last_ns - self.start_ns - self._idle_ns) / 1e9

    def stamps(self) -> list[int]:
        stamps, position, idle_ns = [self.start_ns], 0, 0
        values = self._stamps.values()
        for entry in self.entries:
            idle_ns += entry.idle_ns
            stamps += [value - idle_ns for value in values[position : position + entry.samples]]
            position += entry.samples
        return stamps

    def device_ns(self) -> list[int] | None:
        return list(self._device_ns) or None

    def times_ns(self) -> NDArray[np.int64]:
        return (
            np.array(self._device_ns, dtype=np.int64) if self._device_ns else np.diff(self.stamps())
        )

    def close(self) -> None:
        self.channels.__exit__()

    def _resume(self) -> int:
        self._paused = False
        self._reading = self.channels.read()
        self._compilations = self._program.compilations()
        now = self._clock()
        idle_ns, self._last_ns = now - self._last_ns, now
        self._idle_ns += idle_ns
        return idle_ns

    def _stretch(self, view: memoryview, count: int) -> Stretch:
        first, last = self._stamps.used, self._stamps.used + count
        start_ns = self._clock()
        events = self._loop(view, range(first, last))
        lead_ns, dispatched_ns = view[first] - start_ns, view[last - 1]
        self._program.wait()
        view[last - 1] = self._last_ns = self._clock()
        self._stamps.used = last
        if events:
            self._device_ns += self._intervals(events)
        return Stretch(self._last_ns - start_ns, self._last_ns - dispatched_ns, lead_ns)

    def _intervals(self, events: list[Any]) -> list[int]:
        timer = self._program.timer
        assert timer is not None
        return [timer.elapsed_ns(a, b) for a, b in pairwise(events)]

    def _write(self, **times: int) -> Entry:
        before, self._reading = self._reading, self.channels.read()
        compiled, self._compilations = self._compilations, self._program.compilations()
        moved = self._compilations - compiled
        gpu = None if self._gpu is None else self._gpu.read()
        entry = Entry(before=before, after=self._reading, compilations=moved, gpu=gpu, **times)
        self.samples += entry.samples
        self.entries.append(entry)
        return entry


def as_block(entry: Entry) -> Block:
    before, after = entry.before, entry.after
    host_ns = entry.last_ns - entry.first_ns
    pressure_ns = difference(before.pressure_ns, after.pressure_ns)
    return Block(
        samples=entry.samples,
        host_ns=host_ns,
        dispatch_ns=host_ns - entry.drain_ns,
        cpu_ns=after.cpu_ns - before.cpu_ns,
        faults=after.faults - before.faults,
        major_faults=after.major_faults - before.major_faults,
        switches=after.switches - before.switches,
        involuntary_switches=after.involuntary_switches - before.involuntary_switches,
        queue_ns=difference(before.queue_ns, after.queue_ns),
        pressure=None if pressure_ns is None else min(1.0, pressure_ns / max(1, host_ns)),
        swap_ins=difference(before.swap_ins, after.swap_ins),
        gc_ns=after.gc_ns - before.gc_ns,
        compilations=entry.compilations,
        gpu=entry.gpu,
        idle_ns=entry.idle_ns,
    )
