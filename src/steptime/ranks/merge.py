"""Several ranks' measurements as one: a step ends when the slowest rank's does."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.ranks.rendezvous import Offset, Rendezvous

Times = NDArray[np.int64]


def gathered(
    own: Measurement, rendezvous: Rendezvous, before: Sequence[Offset], *, device: str
) -> Measurement:
    """On the first rank all that was seen; on the others their own. `before`: the clocks' offsets at the beginning."""
    after = rendezvous.offsets()
    samples = replace(rank_samples(rendezvous.ranks.rank, node(), own), device=device)
    seen = rendezvous.gather(samples.to_dict())
    if not seen:
        return own
    ranks = [
        replace(
            RankSamples.from_dict(values),
            offset_ns=(first.ns, last.ns),
            offset_error_ns=max(first.error_ns, last.error_ns),
        )
        for values, first, last in zip(seen, before, after, strict=True)
    ]
    return together(own, ranks)


def node() -> str:
    """A cluster's own name of it, else the host's."""
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


def together(first: Measurement, ranks: Sequence[RankSamples]) -> Measurement:
    """Rank 0's measurement with the times of the slowest. A block begins when its last rank has begun it, so samples
    tile a clock that stands still between blocks, as those of one rank do."""
    edges = list(accumulate((block.samples for block in first.blocks), initial=0))
    stamps, blocks, device = [0], list[Block](), list[Times]()
    clocks = [_Clock(rank, edges) for rank in ranks]
    end_ns = origin_ns = max(clock.begins[0] for clock in clocks)
    for place, (block, span) in enumerate(zip(first.blocks, pairwise(edges), strict=True)):
        begin_ns = max(clock.begins[place] for clock in clocks)
        ends = np.max([clock.ends[slice(*span)] for clock in clocks], axis=0)
        idle_ns, end_ns = max(0, begin_ns - end_ns), int(ends[-1])
        blocks.append(_block(block, end_ns - begin_ns, idle_ns))
        stamps += (ends - begin_ns + stamps[-1]).tolist()
        device += (
            [_device(clocks, begin_ns, place, slice(*span))] if first.device_ns is not None else []
        )
    return replace(
        first,
        stamps=[origin_ns + stamp for stamp in stamps],
        device_ns=np.concatenate(device).tolist() if device else None,
        blocks=tuple(blocks),
        cut=max(rank.cut for rank in ranks),
        steady=all(rank.steady for rank in ranks),
        ranks=tuple(ranks),
    )


class _Clock:
    """One rank's stamps on rank 0's clock, with the pauses that its own stamps leave out."""

    def __init__(self, rank: RankSamples, edges: Sequence[int]) -> None:
        stamps, pauses = np.array(rank.stamps, np.int64), np.cumsum(rank.idle_ns, dtype=np.int64)
        own = stamps[1:] + np.repeat(pauses, np.diff(edges))
        begins = stamps[list(edges[:-1])] + pauses
        first, last = rank.offset_ns

        def moved(times: Times) -> Times:
            """Two clocks run apart evenly."""
            share = (times - begins[0]) / max(1, own[-1] - begins[0])
            found: Times = times + first + np.rint(share * (last - first)).astype(np.int64)
            return found

        self.ends, self.begins = moved(own), moved(begins).tolist()
        self.device_ns = np.array(rank.device_ns or (), np.int64)


def _device(clocks: Sequence[_Clock], begin_ns: int, place: int, span: slice) -> Times:
    """Devices have no common clock, but each began the block with its host."""
    ends = [clock.begins[place] - begin_ns + np.cumsum(clock.device_ns[span]) for clock in clocks]
    found: Times = np.maximum(1, np.diff(np.max(ends, axis=0), prepend=0))
    return found


def _block(block: Block, host_ns: int, idle_ns: int) -> Block:
    drain_ns = block.host_ns - block.dispatch_ns
    return replace(block, host_ns=host_ns, dispatch_ns=max(0, host_ns - drain_ns), idle_ns=idle_ns)
