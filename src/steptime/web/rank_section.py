"""The sentences of a run's page about several ranks: their step, their speed, their exchange."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from steptime.analysis.result import Result
from steptime.core.case import Case
from steptime.core.format import digits, duration, with_interval, with_prefix

byte_rate = partial(with_prefix, unit="B/s")


def headline(case: Case, numbers: Result) -> str:
    """Says whether a rate is that of one rank or of all together."""
    if case.ranks == 1:
        return numbers.headline
    speed = numbers.times.throughput
    unit = f"{speed.unit.replace('_', ' ')}/s"
    per_rank = digits(speed.per_device[speed.unit].value)
    aggregate = digits(speed.aggregate[speed.unit].value)
    step = f"a step lasts as long as the slowest of {case.ranks} ranks"
    rates = f"aggregate {aggregate} {unit}, per rank {per_rank} {unit}"
    return f"{numbers.headline}; {step}; {rates}"


def exchange_sentence(exchange: dict[str, Any] | None) -> str:
    """The exchange of the latest process; empty if nothing was exchanged."""
    if not exchange:
        return ""
    size = with_prefix(exchange["bytes"], "B")
    seconds = duration(median(exchange["seconds"]))
    rate = byte_rate(exchange["bus_bytes_per_second"])
    backend = exchange["backend"]
    sentence = f"{size} of each rank by {backend} take {seconds}, {rate} over each link."
    # Older runs measured only the exchange of all gradients, not that of one number.
    if "latency_seconds" not in exchange:
        return sentence
    latency = with_interval(exchange["latency_seconds"], duration)
    bandwidth = exchange["bandwidth_bytes_per_second"]
    if bandwidth is None:
        return f"{sentence} One number takes {latency}, as long as all of it: it is latency."
    link = with_interval(bandwidth, byte_rate)
    details = f"One number takes {latency}: that is latency, and the rest is {link} over each link."
    return f"{sentence} {details}"


def peak_count(case: Case) -> int:
    """Ranks on GPUs have a peak each; those that share the CPU of a node have one together."""
    if case.ranks == 1:
        return 1
    return case.nodes if case.device == "cpu" else case.ranks
