"""A single result in full: one line per quantity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steptime.analysis import data_type, usage
from steptime.analysis.estimates import Estimate
from steptime.analysis.result import Result
from steptime.analysis.throughput import Throughput
from steptime.cli import output
from steptime.cli.render import accuracy_loss, percentiles
from steptime.cli.render.format import plural, processes
from steptime.cli.request import store_folder
from steptime.cli.stored import short_id
from steptime.core.format import digits, duration, percent, with_interval, with_prefix
from steptime.core.record import Record
from steptime.store.machines import stored_peak

# The names before the values.
MARGIN = 22


def show_details(record: Record, outcome: Result) -> None:
    for name, text in _lines(record, outcome):
        if text:
            output.echo_labelled(name, text, MARGIN)


def step_seconds(outcome: Result) -> float:
    return outcome.times.typical_time_seconds.value


def rates(speeds: Mapping[str, Estimate]) -> str:
    """`1,980 sentences/s, 19,800 source tokens/s`."""
    texts = [f"{digits(speed.value)} {_unit(unit)}/s" for unit, speed in speeds.items()]
    return ", ".join(texts)


def _lines(record: Record, outcome: Result) -> Iterator[tuple[str, str]]:
    times, costs = outcome.times, outcome.costs
    yield "typical step", _interval(times.typical_time_seconds)
    yield "mean step", _mean_step(outcome)
    # At the typical time; the mean is in the next line.
    yield "throughput", _throughput(times.throughput)
    yield "mean speed", _mean_speed(outcome)
    yield from percentiles.lines(record.case, outcome).items()
    yield "CPU time per step", _cpu_time(record, outcome)
    yield "exchange alone", _exchange(costs.exchange)
    yield "ranks", _ranks(outcome.spread.each_process[-1]["ranks"])
    yield "start-up", _start(record, costs.start_seconds)
    yield "network's arithmetic", _arithmetic(record, outcome)
    yield from accuracy_loss.lines(record).items()
    yield "data", data_type.sentence(record)
    yield "staging", data_type.staging_sentence(record)
    yield "monitor", usage.usage_sentence(record)
    yield "measured", _amount(record, outcome)
    yield "protocol", _protocol(outcome)


def _interval(estimate: Estimate) -> str:
    value = duration(estimate.value)
    if estimate.low is None or estimate.high is None:
        return f"{value} ({estimate.claim})"
    return f"{value} ({duration(estimate.low)} … {duration(estimate.high)}, {estimate.claim})"


def _mean_step(outcome: Result) -> str:
    """It has no interval, so the range of the processes says how far it can be trusted."""
    value = duration(outcome.times.speed_numbers.mean_time_seconds)
    means = []
    for process in outcome.spread.each_process:
        if process["id"] not in outcome.spread.set_aside:
            means.append(process["mean_time_seconds"])
    if len(means) == 1:
        return f"{value} (no interval)"
    return f"{value} (no interval; processes {duration(min(means))} … {duration(max(means))})"


def _throughput(throughput: Throughput) -> str:
    if throughput.devices == 1:
        return rates(throughput.per_device)
    aggregate = f"{rates(throughput.aggregate)} aggregate over {throughput.devices} devices"
    return f"{rates(throughput.per_device)} per device, {aggregate}"


def _mean_speed(outcome: Result) -> str:
    numbers = outcome.times.speed_numbers
    unit = f"{_unit(outcome.times.throughput.unit)}/s"
    jitter = f"jitter {digits(numbers.speed_jitter)}"
    # Named so, because consecutive steps are correlated: it is too small.
    uncertainty = f"uncertainty {digits(numbers.speed_uncertainty)} as if steps were independent"
    return f"{digits(numbers.mean_speed)} {unit} aggregate, {jitter}, {uncertainty}"


def _cpu_time(record: Record, outcome: Result) -> str:
    rank = " of rank 0" if record.case.ranks > 1 else ""
    return duration(outcome.side_channels.cpu_seconds_per_step) + rank


def _exchange(exchange: dict[str, Any] | None) -> str:
    if exchange is None:
        return ""
    size = with_prefix(exchange["bytes"], "B")
    low, high = duration(min(exchange["seconds"])), duration(max(exchange["seconds"]))
    rate = with_prefix(exchange["bus_bytes_per_second"], "B/s")
    text = f"{size} by {exchange['backend']} in {low} … {high}, {rate} over each link"
    latency = exchange.get("latency_seconds")
    return text if latency is None else f"{text}; latency {with_interval(latency, duration)}"


def _ranks(ranks: Sequence[dict[str, Any]]) -> str:
    if not ranks:
        return ""
    nodes = plural(len({rank["node"] for rank in ranks}), "node")
    means = [rank["mean_time_seconds"] for rank in ranks]
    low, high = duration(min(means)), duration(max(means))
    return (
        f"{len(ranks)} on {nodes}; mean step {low} … {high} by their own clocks in the last process"
    )


def _start(record: Record, start_seconds: Mapping[str, float]) -> str:
    """Compiling is in the first step, unless a compiler cached it in an earlier run."""
    texts = []
    for name, seconds in start_seconds.items():
        texts.append(f"{name.replace('_', ' ')} {duration(seconds)}")
    return ", ".join([*texts, f"compile cache {record.case.compile_cache}"])


def _arithmetic(record: Record, outcome: Result) -> str:
    flops_per_second = outcome.costs.model_flops_per_second
    if flops_per_second is None:
        return ""
    case = record.case
    fingerprint = record.last.machine.get("fingerprint")
    rate = f"{with_prefix(flops_per_second, 'FLOP/s')} at the typical step"
    if any(flag.name == "implausible" for flag in outcome.flags):
        rate += ", which is implausible"
    peak = stored_peak(store_folder(), fingerprint, case.device, case.precision)
    if peak is None:
        return rate
    # The ranks of a node's CPU share its peak; GPU ranks have one each.
    count = case.nodes if case.device == "cpu" else case.ranks
    return f"{rate}, {percent(flops_per_second / peak / count)} of the {case.precision} peak"


def _amount(record: Record, outcome: Result) -> str:
    spread = outcome.spread
    return f"{processes(spread.processes)}, {spread.steps:,} steps; id {short_id(record)}"


def _protocol(outcome: Result) -> str:
    changes = [f"{k} = {v}" for k, v in outcome.identity.protocol_changes.items()]
    return ", ".join([outcome.identity.protocol["preset"], *changes])


def _unit(name: str) -> str:
    return name.replace("_", " ")
