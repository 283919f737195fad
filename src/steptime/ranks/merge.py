"""Merge the measurements of several ranks into one: a step ends when the slowest rank's does."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.ranks.clocks import RankClock, Times
from steptime.ranks.rendezvous import Offset, Rendezvous


def merge_ranks(
    measurement: Measurement, rendezvous: Rendezvous, before: Sequence[Offset], *, device: str
) -> Measurement:
    """On rank 0 the merged measurement; on the others their own.

    `before`: the clock offsets at the beginning."""
    after = rendezvous.measure_offsets()
    samples = rank_samples(rendezvous.ranks.rank, node_name(), measurement)
    rank_values = rendezvous.gather(replace(samples, device=device).to_dict())
    if not rank_values:
        return measurement
    ranks = []
    for values, first, last in zip(rank_values, before, after, strict=True):
        rank = RankSamples.from_dict(values)
        error_ns = max(first.error_ns, last.error_ns)
        ranks.append(replace(rank, offset_ns=(first.ns, last.ns), offset_error_ns=error_ns))
    return combine(measurement, ranks)


def node_name() -> str:
    """Slurm's name of this node, or the host name."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def rank_samples(rank: int, node: str, measurement: Measurement) -> RankSamples:
    blocks = measurement.blocks
    queues = [block.queue_ns for block in blocks if block.queue_ns is not None]
    return RankSamples(
        rank=rank,
        node=node,
        stamps=measurement.stamps,
        device_ns=measurement.device_ns,
        idle_ns=tuple(block.idle_ns for block in blocks),
        cpu_ns=sum(block.cpu_ns for block in blocks),
        queue_ns=sum(queues) if len(queues) == len(blocks) else None,
        cut=measurement.cut,
        steady=measurement.steady,
        threads=measurement.facts.get("threads"),
    )


def combine(first: Measurement, ranks: Sequence[RankSamples]) -> Measurement:
    """Rank 0's measurement with the times of the slowest rank.

    A block begins when its last rank has begun it. So the samples are contiguous on a clock that
    stops between blocks, like those of a single rank."""
    edges = list(accumulate((block.samples for block in first.blocks), initial=0))
    clocks = [RankClock(rank, edges) for rank in ranks]
    origin_ns = max(clock.begins[0] for clock in clocks)
    end_ns = origin_ns
    stamps = [0]
    blocks: list[Block] = []
    device_times: list[Times] = []
    for index, (block, (start, stop)) in enumerate(zip(first.blocks, pairwise(edges), strict=True)):
        begin_ns = max(clock.begins[index] for clock in clocks)
        ends = np.max([clock.ends[start:stop] for clock in clocks], axis=0)
        idle_ns = max(0, begin_ns - end_ns)
        end_ns = int(ends[-1])
        blocks.append(_merged_block(block, end_ns - begin_ns, idle_ns))
        stamps += (ends - begin_ns + stamps[-1]).tolist()
        if first.device_ns is not None:
            device_times.append(_device_times(clocks, begin_ns, index, slice(start, stop)))
    return replace(
        first,
        stamps=[origin_ns + stamp for stamp in stamps],
        device_ns=np.concatenate(device_times).tolist() if device_times else None,
        blocks=tuple(blocks),
        cut=max(rank.cut for rank in ranks),
        steady=all(rank.steady for rank in ranks),
        ranks=tuple(ranks),
    )


def _device_times(clocks: Sequence[RankClock], begin_ns: int, block: int, span: slice) -> Times:
    """Devices have no common clock, but each began the block together with its host."""
    ends = []
    for clock in clocks:
        delay_ns = clock.begins[block] - begin_ns
        ends.append(delay_ns + np.cumsum(clock.device_ns[span]))
    intervals = np.diff(np.max(ends, axis=0), prepend=0)
    times: Times = np.maximum(1, intervals)
    return times


def _merged_block(block: Block, host_ns: int, idle_ns: int) -> Block:
    drain_ns = block.host_ns - block.dispatch_ns
    return replace(block, host_ns=host_ns, dispatch_ns=max(0, host_ns - drain_ns), idle_ns=idle_ns)
