"""Run blocks and record what clocks and side channels report. Makes no decisions."""

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
    """One run of a loop and the wait after it. A block has several if the first is too short."""

    total_ns: int
    drain_ns: int  # the wait
    # The dispatch of the first sample: the queue was empty, so nothing delayed the host.
    lead_ns: int


class Entry(NamedTuple):
    """A block as it is recorded between two blocks. Everything that takes time to compute waits."""

    samples: int
    # The end of the previous block: its bookkeeping is in this block's first sample.
    first_ns: int
    last_ns: int
    # Without the bookkeeping before the stretches.
    stretch_ns: int
    drain_ns: int
    lead_ns: int
    device_ns: int
    # The gap before first_ns, while the clock stood still.
    idle_ns: int
    before: Reading
    after: Reading
    compilations: int
    gpu: dict[str, float] | None


class Recorder:
    """Stamps are contiguous from `start` on.

    From `pause` to the next block the clock stands still; the gap is recorded as idle time."""

    def __init__(
        self,
        program: Program,
        loop: Loop,
        clock: Clock = time.perf_counter_ns,
        gpu: Gpu | None = None,
    ) -> None:
        self._program = program
        self._loop = loop
        self._clock = clock
        self._gpu = gpu
        # Rank 0 decides for all ranks, so that they run the same number of samples.
        self.broadcast: Callable[[Any], Any] | None = None
        self.channels = Channels(clock)
        self.entries: list[Entry] = []
        self._stamps = Stamps()
        self._device_ns: list[int] = []
        self.samples = 0
        self._idle_ns = 0
        self._paused = False

    def start(self) -> None:
        self.channels.__enter__()
        self.channels.prepare()
        self._reading = self.channels.read()
        self._compilations = self._program.compilations()
        self.start_ns = self._last_ns = self._clock()

    def pause(self) -> None:
        self._paused = True

    def block(self, count: int, least_ns: int = 0) -> Entry:
        """At least `count` samples, and more until the block has lasted `least_ns`."""
        idle_ns = self._resume() if self._paused else 0
        # Room for twice as many, because the estimate of a sample's time may be too long.
        view = self._stamps.room(2 * count)
        first = self._stamps.used
        first_ns = self._last_ns
        first_device = len(self._device_ns)
        stretches = []
        while count:
            stretches.append(self._run_stretch(view, count))
            samples = self._stamps.used - first
            room = len(view) - self._stamps.used
            elapsed_ns = self._last_ns - first_ns
            count = 0
            if elapsed_ns < least_ns:
                missing_share = least_ns / max(1, elapsed_ns) - 1
                count = min(room, math.ceil(missing_share * samples))
            if self.broadcast is not None:
                count = self.broadcast(count)
        return self._add_entry(
            samples=samples,
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
        """From the first stamp to the last, without the pauses."""
        return (self._last_ns - self.start_ns - self._idle_ns) / 1e9

    def stamps(self) -> list[int]:
        stamps = [self.start_ns]
        first = 0
        idle_ns = 0
        values = self._stamps.values()
        for entry in self.entries:
            last = first + entry.samples
            idle_ns += entry.idle_ns
            stamps += [value - idle_ns for value in values[first:last]]
            first = last
        return stamps

    def device_ns(self) -> list[int] | None:
        return list(self._device_ns) or None

    def times_ns(self) -> NDArray[np.int64]:
        if self._device_ns:
            return np.array(self._device_ns, dtype=np.int64)
        return np.diff(self.stamps())

    def close(self) -> None:
        self.channels.__exit__()

    def _resume(self) -> int:
        self._paused = False
        # What happened during the pause does not count for the next block.
        self.channels.prepare()
        self._reading = self.channels.read()
        self._compilations = self._program.compilations()
        now = self._clock()
        idle_ns = now - self._last_ns
        self._last_ns = now
        self._idle_ns += idle_ns
        return idle_ns

    def _run_stretch(self, view: memoryview, count: int) -> Stretch:
        first = self._stamps.used
        last = first + count
        start_ns = self._clock()
        events = self._loop(view, range(first, last))
        lead_ns = view[first] - start_ns
        dispatched_ns = view[last - 1]
        self._program.wait()
        # The last sample ends with the wait, not with its dispatch.
        view[last - 1] = self._last_ns = self._clock()
        self._stamps.used = last
        if events:
            self._device_ns += self._intervals(events)
        total_ns = self._last_ns - start_ns
        return Stretch(total_ns, drain_ns=self._last_ns - dispatched_ns, lead_ns=lead_ns)

    def _intervals(self, events: list[Any]) -> list[int]:
        timer = self._program.timer
        assert timer is not None
        return [timer.elapsed_ns(before, after) for before, after in pairwise(events)]

    def _add_entry(self, **times: int) -> Entry:
        before = self._reading
        self._reading = self.channels.read()
        compilations_before = self._compilations
        self._compilations = self._program.compilations()
        entry = Entry(
            before=before,
            after=self._reading,
            compilations=self._compilations - compilations_before,
            gpu=None if self._gpu is None else self._gpu.read(),
            **times,
        )
        self.samples += entry.samples
        self.entries.append(entry)
        return entry


def make_block(entry: Entry) -> Block:
    before = entry.before
    after = entry.after
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
