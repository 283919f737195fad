"""Measures one program in this process: first step, group size, warm-up, self-checks, blocks. Knows no framework."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from steptime.core.case import Case
from steptime.core.measurement import Block, Measurement
from steptime.core.program import Program
from steptime.core.protocol import Protocol
from steptime.engine import channels, gpu, grouping
from steptime.engine.asynchrony import agreement, forced_share
from steptime.engine.clock import Clock, Drift, self_test, source
from steptime.engine.recorder import Recorder, as_block
from steptime.engine.timing import Loop, host_loop, latency_loop, stamp_cost_ns, stream_loop
from steptime.engine.warmup import Cut, behind_compilations, find_cut

PILOT_SAMPLES = 4
MOST_GROUPED = 1 << 20


class Meter:
    """`prepare`, then `measure` or any number of `block`s, then `measurement`.

    `agree`: one of several ranks, which all run the same number of steps. What a time decides, rank 0's decides."""

    agree: Callable[[Any], Any] | None = None

    def __init__(
        self,
        program: Program,
        case: Case,
        protocol: Protocol,
        *,
        clock: Clock = time.perf_counter_ns,
        nvml: Any = None,
    ) -> None:
        self._program, self._case, self._protocol, self._clock, self._nvml = (
            program,
            case,
            protocol,
            clock,
            nvml,
        )
        self._timer = program.timer if case.timing == "stream" else None
        self._clock_test = {**self_test(clock), "stamp_ns": stamp_cost_ns(clock)}
        self._drift, self._ticks = Drift(clock), channels.cpu_ticks()
        self._checks: dict[str, float] = {"unstamped_steps": 0, "recompiled": 0}
        self._cut, self._cut_seconds, self._steady = 0, 0.0, True
        self._warm = False

    @property
    def samples(self) -> int:
        return self._recorder.samples

    def prepare(self) -> None:
        """Up to the steady state. Only what is needed to choose the group runs before the first stamp."""
        self._first_step_seconds = self._burst(1) / 1e9
        self.group, step_ns = self._choose_group()
        self._sample_ns = self.group * step_ns
        gc.collect()
        gc.freeze()  # what start-up made stays out of the collections inside steps
        self._recorder = Recorder(
            self._program, self._loop(self._case.timing), self._clock, self._find_gpu()
        )
        self._recorder.agree = self.agree
        self._agreed(None)
        self._recorder.start()
        self._warm_up()
        self._recorder.pause()
        self._check_asynchrony()

    def block(self, seconds: float, *, least_steps: int = 1) -> Block:
        """One block on its own: the clock stands still until the next is asked for. A sample goes before it unstamped:
        the first step behind a pause was seen to take twice as long, and a partner's turn is one."""
        self._burst(self.group)
        self._run(seconds, least_steps)
        self._recorder.pause()
        return as_block(self._recorder.entries[-1])

    def measure(self) -> None:
        """Blocks until enough is kept; what warm-up left over counts."""
        while not self._agreed(self._enough()):
            self._run(self._protocol.block_seconds)

    def measurement(self, starts: dict[str, float]) -> Measurement:
        recorder = self._recorder
        absent = recorder.channels.absent
        recorder.close()
        gc.unfreeze()
        return Measurement(
            group=self.group,
            stamps=recorder.stamps(),
            device_ns=recorder.device_ns() if self._timer is not None else None,
            blocks=tuple(map(as_block, recorder.entries)),
            cut=self._cut if self._steady else self.samples // 2,
            steady=self._steady,
            clock={**self._clock_test, "source": source(), "drift": self._drift.share()},
            starts={**starts, "first_step": self._first_step_seconds},
            checks={**self._checks, **self._agreements()},
            memory=self._program.memory(),
            facts={**self._program.facts(), "absent_channels": absent},
            steal_share=channels.steal_share(self._ticks, channels.cpu_ticks()),
        )

    def _agreed(self, value: Any) -> Any:
        """The clock stands still meanwhile: to agree is no part of a step."""
        if self.agree is None:
            return value
        if hasattr(self, "_recorder"):
            self._recorder.pause()
        return self.agree(value)

    def _burst(self, steps: int) -> int:
        """Steps as this case times them, up to the last one's end: their time in nanoseconds."""
        step, wait, latency = self._program.step, self._program.wait, self._case.timing == "latency"
        self._checks["unstamped_steps"] += steps
        start = self._clock()
        for _ in range(steps):
            outputs = step()
            if latency:
                wait()
        wait()
        elapsed_ns = self._clock() - start
        del outputs
        return elapsed_ns

    def _choose_group(self) -> tuple[int, float]:
        least_ns = grouping.least_host_ns(self._protocol, self._clock_test["cost_ns"])
        if self._timer is not None:
            cost_ns = self._checks["event_cost_ns"] = grouping.event_cost_ns(
                self._timer.record, self._clock
            )
            least_ns = grouping.least_device_ns(self._protocol, cost_ns)
        steps, least_ns = 1, self._agreed(least_ns)
        # The best of three: a step that was slow for once must not make the groups too small.
        while (
            best_ns := self._agreed(min(self._burst(steps) for _ in range(3)))
        ) < PILOT_SAMPLES * least_ns:
            if steps == MOST_GROUPED:
                break
            steps *= 2
        step_ns = max(1.0, best_ns / steps)
        return grouping.group_size(step_ns, least_ns), step_ns

    def _loop(self, timing: str) -> Loop:
        program = self._program
        if timing == "latency":
            return latency_loop(program.step, self._clock, self.group, program.wait)
        if program.timer is not None:
            return stream_loop(program.step, self._clock, self.group, program.timer.record)
        return host_loop(program.step, self._clock, self.group)

    def _find_gpu(self) -> gpu.Gpu | None:
        if self._case.device == "cpu":
            return None
        board = gpu.find(
            self._case.device, gpu.open_nvml() if self._nvml is None else self._nvml, self._clock
        )
        if board is not None:
            self._checks["nvml_cost_ns"] = board.cost_ns
        return board

    def _run(self, seconds: float, least_steps: int = 1) -> None:
        protocol, count = self._protocol, math.ceil(1e9 * seconds / self._sample_ns)
        if self._timer is not None:
            most = math.ceil(1e9 * protocol.block_most_seconds / self._sample_ns)
            count = max(count, min(most, math.ceil(protocol.block_steps / self.group)))
        count = self._agreed(max(count, math.ceil(least_steps / self.group)))
        entry = self._recorder.block(count, int(1e9 * seconds))
        self._sample_ns = max(1.0, (entry.last_ns - entry.first_ns) / entry.samples)
        if entry.compilations and self._warm:
            self._recompile()

    def _recompile(self) -> None:
        """Once, the cut moves behind it. A program that goes on compiling has no steady state."""
        if self._checks["recompiled"]:
            self._steady = False
        else:
            self._cut, self._cut_seconds = self.samples, self._recorder.seconds
        self._checks["recompiled"] += 1

    def _enough(self) -> bool:
        kept_steps = (self.samples - self._cut) * self.group
        if self._protocol.steps:
            return kept_steps >= self._protocol.steps
        kept_seconds = self._recorder.seconds - self._cut_seconds
        return (
            kept_steps >= self._protocol.least_steps
            and kept_seconds >= self._protocol.least_seconds
        )

    def _warm_up(self) -> None:
        """Twice as long each time, until the end of the transient does not lie at the edge of what can be seen."""
        protocol, patience = self._protocol, 1 if self._case.device == "cpu" else 2
        most = min(patience * protocol.warmup_most_seconds, protocol.budget_seconds / 4)
        samples = max(protocol.warmup_steps, 2 * protocol.warmup_start)
        seconds = patience * protocol.warmup_seconds
        while True:
            while self.samples < 2 or self._agreed(self._is_short(samples, seconds, most)):
                self._run(protocol.block_seconds)
            found = Cut(*self._agreed(astuple(find_cut(self._recorder.times_ns(), protocol))))
            if self._agreed(found.settled or self._recorder.seconds >= most):
                return self._settle(found)
            samples, seconds = 2 * self.samples, 2 * self._recorder.seconds

    def _is_short(self, samples: int, seconds: float, most: float) -> bool:
        elapsed = self._recorder.seconds
        return elapsed < most and (self.samples < samples or elapsed < seconds)

    def _settle(self, found: Cut) -> None:
        self._warm, self._steady = True, found.settled
        self._checks["warmup_boundary"] = found.boundary_ratio
        blocks = [(entry.samples, entry.compilations) for entry in self._recorder.entries]
        self._cut, recompiled = behind_compilations(found.cut, blocks)
        self._checks["recompiled"] = int(recompiled)
        if not found.settled:
            self._cut = self.samples // 2
        stamps = self._recorder.stamps()
        self._cut_seconds = (stamps[self._cut] - stamps[0]) / 1e9

    def _check_asynchrony(self) -> None:
        """With the clock stopped: the last block's steps once more in the other timing, then their results forced."""
        entry = self._recorder.entries[-1]
        other = "latency" if self._case.timing == "stream" else "stream"
        view = memoryview(bytearray(8 * entry.samples)).cast("q")
        start = self._clock()
        self._loop(other)(view, range(entry.samples))
        self._program.wait()
        ratio = (self._clock() - start) / max(1, entry.stretch_ns)
        self._checks["latency_ratio"] = ratio if other == "latency" else 1 / ratio
        self._checks["unstamped_steps"] += entry.samples * self.group
        if self._program.timer is None:
            steps = max(2, entry.samples * self.group)
            share, steps = forced_share(self._program, self._clock, steps, agree=self._agreed)
            self._checks["unstamped_steps"] += steps
            self._checks |= {} if share is None else {"forced_share": share}

    def _agreements(self) -> dict[str, float]:
        entries = self._recorder.entries
        if self._timer is not None:
            leads = [e.lead_ns * e.samples / e.device_ns for e in entries if e.device_ns > 0]
            closure = agreement(
                "closure", ((abs(e.device_ns - e.stretch_ns), e.stretch_ns) for e in entries)
            )
            return {**closure, "dispatch_share": statistics.median(leads)} if leads else closure
        if self._case.timing == "stream":
            return agreement("drain_share", ((e.drain_ns, e.stretch_ns) for e in entries))
        return {}
