"""Measure one program in this process: first step, group size, warm-up, self-checks, blocks.

Knows no framework."""

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
from steptime.engine.recorder import Recorder, make_block
from steptime.engine.run_queue import others_share, read_cpu_use
from steptime.engine.timing import Loop, host_loop, latency_loop, stamp_cost_ns, stream_loop
from steptime.engine.warmup import Cut, find_cut, move_past_compilations

PILOT_SAMPLES = 4
MOST_GROUPED = 1 << 20
# A step that takes longer needs no second try: it is a group of its own in any case.
SLOW_STEP_NS = 500_000_000
# Fewer kept samples say nothing, so these are run even if the budget is spent.
LEAST_KEPT = 3
# By which a process was cut short.
BUDGET = "budget"
LIMIT = "limit"


class Meter:
    """`prepare`, then `measure` or any number of `block`s, then `measurement`.

    `broadcast` is set if there are several ranks. They all run the same number of steps, so
    rank 0 decides everything that depends on a time."""

    broadcast: Callable[[Any], Any] | None = None

    def __init__(
        self,
        program: Program,
        case: Case,
        protocol: Protocol,
        *,
        clock: Clock = time.perf_counter_ns,
        nvml: Any = None,
        deadline_ns: float = math.inf,
    ) -> None:
        """`deadline_ns`: on the clock; no step begins that would end after it."""
        self._program = program
        self._case = case
        self._protocol = protocol
        self._clock = clock
        self._nvml = nvml
        self._deadline_ns = deadline_ns
        self._cut_short = ""
        self._timer = program.timer if case.timing == "stream" else None
        self._clock_test = {**self_test(clock), "stamp_ns": stamp_cost_ns(clock)}
        self._drift = Drift(clock)
        self._cpu_ticks = channels.cpu_ticks()
        self._cpu_use = read_cpu_use()
        self._checks: dict[str, float] = {"unstamped_steps": 0, "recompiled": 0}
        self._cut = 0
        self._cut_seconds = 0.0
        self._steady = True
        self._warm = False
        self._first_step_seconds: float | None = None

    @property
    def samples(self) -> int:
        return self._recorder.samples

    def run_first_step(self) -> None:
        """It traces, compiles and allocates, so its time is a number of its own."""
        self._first_step_seconds = self._burst(1) / 1e9

    def prepare(self) -> None:
        """Run to the steady state. Only the choice of the group runs before the first stamp."""
        if self._first_step_seconds is None:
            self.run_first_step()
        self.group, step_ns = self._choose_group()
        # Only an estimate: every block updates it.
        self._sample_ns = self.group * step_ns
        gc.collect()
        # Objects made at start-up stay out of the collections during steps.
        gc.freeze()
        loop = self._loop(self._case.timing)
        self._recorder = Recorder(self._program, loop, self._clock, self._find_gpu())
        self._recorder.broadcast = self.broadcast
        self._broadcast(None)
        self._recorder.start()
        self._warm_up()
        self._recorder.pause()
        if not self._broadcast(self._is_past_deadline()):
            self._check_asynchrony()

    def block(self, seconds: float, *, least_steps: int = 1) -> Block:
        """One block on its own: the clock stands still until the next one.

        An unstamped sample runs before it, because the first step after a pause can take twice
        as long, and a partner's turn is a pause."""
        self._burst(self.group)
        self._run_block(seconds, least_steps)
        self._recorder.pause()
        return make_block(self._recorder.entries[-1])

    def measure(self) -> None:
        """Run blocks until enough samples are kept. Samples after the warm-up cut count."""
        while not self._broadcast(self._has_enough()):
            self._run_block(self._protocol.block_seconds)

    def measurement(self, starts: dict[str, float]) -> Measurement:
        recorder = self._recorder
        absent = recorder.channels.absent
        recorder.close()
        gc.unfreeze()
        facts = {**self._program.facts(), "absent_channels": absent}
        if self._cut_short:
            facts["cut_short"] = self._cut_short
        return Measurement(
            group=self.group,
            stamps=recorder.stamps(),
            device_ns=recorder.device_ns() if self._timer is not None else None,
            blocks=tuple(map(make_block, recorder.entries)),
            cut=self._cut if self._steady else self.samples // 2,
            steady=self._steady,
            clock={**self._clock_test, "source": source(), "drift": self._drift.share()},
            starts={**starts, "first_step": self._first_step_seconds or 0.0},
            checks={**self._checks, **self._agreements()},
            memory=self._program.memory(),
            facts=facts,
            steal_share=channels.steal_share(self._cpu_ticks, channels.cpu_ticks()),
            others_share=others_share(self._cpu_use, read_cpu_use()),
        )

    def _broadcast(self, value: Any) -> Any:
        """Rank 0's value. The clock stands still meanwhile: agreeing is not part of a step."""
        if self.broadcast is None:
            return value
        if hasattr(self, "_recorder"):
            self._recorder.pause()
        return self.broadcast(value)

    def _burst(self, steps: int) -> int:
        """Run unstamped steps in the case's timing and return their nanoseconds."""
        step = self._program.step
        wait = self._program.wait
        latency = self._case.timing == "latency"
        self._checks["unstamped_steps"] += steps
        start_ns = self._clock()
        for _ in range(steps):
            outputs = step()
            if latency:
                wait()
        wait()
        elapsed_ns = self._clock() - start_ns
        # Freed after the clock is read, as in the timed loops.
        del outputs
        return elapsed_ns

    def _choose_group(self) -> tuple[int, float]:
        """Steps in a sample, and the nanoseconds of one step."""
        least_ns = grouping.least_host_ns(self._protocol, self._clock_test["cost_ns"])
        if self._timer is not None:
            cost_ns = grouping.event_cost_ns(self._timer.record, self._clock)
            self._checks["event_cost_ns"] = cost_ns
            least_ns = grouping.least_device_ns(self._protocol, cost_ns)
        least_ns = self._broadcast(least_ns)
        steps = 1
        best_ns = self._best_burst(steps)
        while best_ns < PILOT_SAMPLES * least_ns and steps < MOST_GROUPED:
            steps *= 2
            best_ns = self._best_burst(steps)
        step_ns = max(1.0, best_ns / steps)
        return grouping.group_size(step_ns, least_ns), step_ns

    def _best_burst(self, steps: int) -> float:
        """The best of three: one slow step must not make the groups too small."""
        best_ns: float = self._broadcast(self._burst(steps))
        if best_ns >= SLOW_STEP_NS:
            return best_ns
        best_ns = self._broadcast(min(best_ns, self._burst(steps), self._burst(steps)))
        return best_ns

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
        nvml = gpu.open_nvml() if self._nvml is None else self._nvml
        board = gpu.find_gpu(self._case.device, nvml, self._clock)
        if board is not None:
            self._checks["nvml_cost_ns"] = board.cost_ns
        return board

    def _run_block(self, seconds: float, least_steps: int = 1) -> None:
        protocol = self._protocol
        count = math.ceil(1e9 * seconds / self._sample_ns)
        # A device's queue is drained at every block's end, so a block needs several steps.
        if self._timer is not None:
            most = math.ceil(1e9 * protocol.block_most_seconds / self._sample_ns)
            count = max(count, min(most, math.ceil(protocol.block_steps / self.group)))
        count = self._broadcast(max(count, math.ceil(least_steps / self.group)))
        entry = self._recorder.block(count, int(1e9 * seconds))
        self._sample_ns = max(1.0, (entry.last_ns - entry.first_ns) / entry.samples)
        if entry.compilations and self._warm:
            self._note_recompilation()

    def _note_recompilation(self) -> None:
        """The first one moves the cut. A program that goes on compiling has no steady state."""
        if self._checks["recompiled"]:
            self._steady = False
        else:
            self._cut = self.samples
            self._cut_seconds = self._recorder.seconds
        self._checks["recompiled"] += 1

    def _has_enough(self) -> bool:
        protocol = self._protocol
        kept_steps = (self.samples - self._cut) * self.group
        kept_seconds = self._recorder.seconds - self._cut_seconds
        if protocol.steps:
            enough = kept_steps >= protocol.steps
        else:
            enough = kept_steps >= protocol.least_steps and kept_seconds >= protocol.least_seconds
        if enough:
            return True
        self._cut_short = self._find_time_limit(kept_steps)
        return bool(self._cut_short)

    def _find_time_limit(self, kept_steps: int) -> str:
        """What forbids another block; empty if nothing does."""
        if self._is_past_deadline():
            return LIMIT
        protocol = self._protocol
        share_seconds = protocol.budget_seconds / protocol.processes_least
        is_spent = self._recorder.seconds >= share_seconds and kept_steps < protocol.least_steps
        has_some = self.samples - self._cut >= LEAST_KEPT
        return BUDGET if is_spent and has_some else ""

    def _is_past_deadline(self) -> bool:
        return self._clock() + self._sample_ns > self._deadline_ns

    def _warm_up(self) -> None:
        """Run twice as long each time, until the transient ends well inside what was run."""
        protocol = self._protocol
        # A GPU needs longer until its clocks and its temperature are stable.
        patience = 1 if self._case.device == "cpu" else 2
        most_seconds = min(patience * protocol.warmup_most_seconds, protocol.budget_seconds / 4)
        samples = max(protocol.warmup_steps, 2 * protocol.warmup_start)
        seconds = patience * protocol.warmup_seconds
        while True:
            while self.samples < 2 or self._broadcast(
                self._is_too_short(samples, seconds, most_seconds)
            ):
                self._run_block(protocol.block_seconds)
            rank_cut = find_cut(self._recorder.times_ns(), protocol)
            cut = Cut(*self._broadcast(astuple(rank_cut)))
            is_over = cut.settled or self._recorder.seconds >= most_seconds
            if self._broadcast(is_over or self._is_past_deadline()):
                self._end_warmup(cut)
                return
            samples = 2 * self.samples
            seconds = 2 * self._recorder.seconds

    def _is_too_short(self, samples: int, seconds: float, most_seconds: float) -> bool:
        elapsed = self._recorder.seconds
        if self._is_past_deadline():
            return False
        return elapsed < most_seconds and (self.samples < samples or elapsed < seconds)

    def _end_warmup(self, cut: Cut) -> None:
        self._warm = True
        self._steady = cut.settled
        self._checks["warmup_boundary"] = cut.boundary_ratio
        blocks = [(entry.samples, entry.compilations) for entry in self._recorder.entries]
        self._cut, recompiled = move_past_compilations(cut.cut, blocks)
        self._checks["recompiled"] = int(recompiled)
        if not cut.settled:
            self._cut = self.samples // 2
        stamps = self._recorder.stamps()
        self._cut_seconds = (stamps[self._cut] - stamps[0]) / 1e9

    def _check_asynchrony(self) -> None:
        """Repeat the last block's steps in the other timing, then force results.

        The recorder's clock is stopped meanwhile."""
        entry = self._recorder.entries[-1]
        other_timing = "latency" if self._case.timing == "stream" else "stream"
        view = memoryview(bytearray(8 * entry.samples)).cast("q")
        start_ns = self._clock()
        self._loop(other_timing)(view, range(entry.samples))
        self._program.wait()
        ratio = (self._clock() - start_ns) / max(1, entry.stretch_ns)
        self._checks["latency_ratio"] = ratio if other_timing == "latency" else 1 / ratio
        self._checks["unstamped_steps"] += entry.samples * self.group
        if self._program.timer is None:
            self._check_forced_results(max(2, entry.samples * self.group))

    def _check_forced_results(self, steps: int) -> None:
        share, steps_run = forced_share(
            self._program, self._clock, steps, broadcast=self._broadcast
        )
        self._checks["unstamped_steps"] += steps_run
        if share is not None:
            self._checks["forced_share"] = share

    def _agreements(self) -> dict[str, float]:
        entries = self._recorder.entries
        if self._timer is not None:
            differences = [abs(entry.device_ns - entry.stretch_ns) for entry in entries]
            stretches = [entry.stretch_ns for entry in entries]
            checks = agreement("closure", zip(differences, stretches, strict=True))
            # The host's share of a sample: above 1 the device waits for the host.
            leads = [e.lead_ns * e.samples / e.device_ns for e in entries if e.device_ns > 0]
            if leads:
                checks["dispatch_share"] = statistics.median(leads)
            return checks
        if self._case.timing == "stream":
            return agreement("drain_share", ((e.drain_ns, e.stretch_ns) for e in entries))
        return {}
