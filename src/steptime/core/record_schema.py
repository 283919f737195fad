"""What a record may hold: types, bounds and depth of every line of a journal.

Everything that takes in a journal or reads one back asks this module, so that no analysis meets a
value that it does not expect. What is not named here is only bounded: facts for people to read."""

from __future__ import annotations

from typing import Any

from steptime.core.case import KINDS
from steptime.core.cause import Cause
from steptime.core.schema import (
    MOST_COUNT,
    MOST_TEXT,
    Anything,
    Choice,
    Columns,
    Date,
    Either,
    Flag,
    Kind,
    ListOf,
    Mapped,
    Maybe,
    Number,
    Object,
    Text,
    Whole,
)

ANYTHING = Anything()
COUNT = Whole(0, MOST_COUNT)
AMOUNT = Number(0)
NAME = Text()
IDENTIFIER = Text(most=200, least=1)
SENTENCE = Text(most=MOST_TEXT, free=True)
NANOSECONDS = Whole()
# Facts of which the analysis uses only the text.
REMARK = Maybe(Either(SENTENCE, Either(Flag(), Number())))
PAIR = ListOf(Number(), least=2, most=2)

# Which settings exist and go together is checked by `Case.from_dict` and `Protocol.from_dict`.
CASE = Object(KINDS, required=("workload",))
PROTOCOL = Mapped(ANYTHING)

ENVIRONMENT = Object(
    {
        "container": Object({"kind": NAME}),
        "cpus": Maybe(ListOf(COUNT)),
        "session_process": Maybe(Whole(0)),
        "slurm": Mapped(ANYTHING),
    }
)
BEGIN = Object(
    {
        "schema": NAME,
        "id": IDENTIFIER,
        "session": IDENTIFIER,
        "plan": Text(most=200),
        "process": COUNT,
        "case": CASE,
        "protocol": PROTOCOL,
        "environment": ENVIRONMENT,
        "pair": Text(most=200),
        "task": IDENTIFIER,
        "options": Mapped(ANYTHING),
        "started": Date(),
        "pid": Whole(0),
    },
    required=(
        "schema",
        "id",
        "session",
        "plan",
        "process",
        "case",
        "protocol",
        "environment",
        "pair",
        "started",
    ),
)

PEAKS = Object({"flops_per_second": Mapped(AMOUNT), "threads": Maybe(COUNT)})
MACHINE = Object(
    {
        "fingerprint": Maybe(NAME),
        "architecture": Maybe(NAME),
        "cpu": Maybe(NAME),
        "host": Maybe(NAME),
        "hostname": Maybe(NAME),
        "kernel": Maybe(NAME),
        "os": Maybe(NAME),
        "libc": Maybe(NAME),
        "sockets": Maybe(COUNT),
        "cores": Maybe(COUNT),
        "threads": Maybe(COUNT),
        "threads_usable": Maybe(COUNT),
        "clock_most_mhz": Maybe(AMOUNT),
        "vector_flags": Maybe(ListOf(NAME)),
        "gpus": Maybe(ListOf(Object({"name": NAME}, required=("name",)))),
        "health": Maybe(Object({"governor": REMARK, "other_gpu_processes": REMARK})),
        "peaks": Maybe(Mapped(PEAKS)),
    }
)
NETWORK = Object(
    {
        "name": NAME,
        "fingerprint": NAME,
        "unit": NAME,
        "optimizer": NAME,
        "units_per_step": Either(AMOUNT, Mapped(AMOUNT)),
        "flops_per_step": Maybe(AMOUNT),
        "least_flops_per_step": AMOUNT,
    }
)
CONTEXT = Object(
    {
        "machine": MACHINE,
        "software": Mapped(Maybe(SENTENCE)),
        "network": NETWORK,
        "program": Text(most=200),
    }
)

BLOCK: dict[str, Kind] = {
    "samples": COUNT,
    "host_ns": NANOSECONDS,
    "dispatch_ns": NANOSECONDS,
    "cpu_ns": NANOSECONDS,
    "faults": Whole(),
    "major_faults": Whole(),
    "switches": Whole(),
    "involuntary_switches": Whole(),
}
SAMPLE = Object(
    {
        **BLOCK,
        "queue_ns": Maybe(NANOSECONDS),
        "pressure": Maybe(Number()),
        "swap_ins": Maybe(Whole()),
        "gc_ns": NANOSECONDS,
        "compilations": Whole(),
        "idle_ns": NANOSECONDS,
        "gpu": Maybe(Mapped(Number())),
        "deltas": ListOf(NANOSECONDS),
        "device_ns": Maybe(ListOf(NANOSECONDS)),
    },
    required=(*BLOCK, "deltas", "device_ns"),
)

RANK = Object(
    {
        "rank": COUNT,
        "node": NAME,
        "stamps": NANOSECONDS,
        "deltas": ListOf(NANOSECONDS),
        "device_ns": Maybe(ListOf(NANOSECONDS)),
        "idle_ns": ListOf(NANOSECONDS),
        "cpu_ns": NANOSECONDS,
        "queue_ns": Maybe(NANOSECONDS),
        "cut": COUNT,
        "steady": Flag(),
        "threads": Maybe(COUNT),
        "device": NAME,
        "offset_ns": ListOf(NANOSECONDS, least=2, most=2),
        "offset_error_ns": NANOSECONDS,
    },
    required=("rank", "node", "stamps", "deltas", "device_ns", "idle_ns", "cpu_ns", "offset_ns"),
)
CLOCK = Object(
    {
        "cost_ns": Maybe(Number()),
        "resolution_ns": Maybe(Number()),
        "stamp_ns": Maybe(Number()),
        "drift": Maybe(Number()),
        "source": Maybe(NAME),
    }
)
MEASUREMENT = Object(
    {
        "group": Whole(1, MOST_COUNT),
        "first": NANOSECONDS,
        "samples": Whole(1, MOST_COUNT),
        "cut": COUNT,
        "steady": Flag(),
        "clock": CLOCK,
        "starts": Mapped(Number()),
        "checks": Mapped(Number()),
        "memory": Mapped(Whole()),
        "facts": Object({"threads": Maybe(COUNT)}),
        "steal_share": Maybe(Number()),
        "others_share": Maybe(Number()),
        "ranks": ListOf(RANK),
    },
    required=("group", "first", "samples", "cut", "steady", "clock", "starts"),
)
FAILURE = Object(
    {"cause": Choice([cause.value for cause in Cause]), "reason": SENTENCE, "output": SENTENCE},
    required=("cause", "reason"),
)

TASK_METRIC: dict[str, Kind] = {
    "metric": NAME,
    "value": Maybe(Number()),
    "interval": Maybe(PAIR),
    "samples": COUNT,
    "found_by": NAME,
}
TASK_CHANGE: dict[str, Kind] = {
    "metric": NAME,
    "before": Maybe(Number()),
    "after": Maybe(Number()),
    "after_interval": Maybe(PAIR),
    "change": Maybe(Number()),
    "change_interval": Maybe(PAIR),
    "samples": COUNT,
}
ACCURACY = Object(
    {
        "found_by": NAME,
        "reference": SENTENCE,
        "data": SENTENCE,
        "samples": COUNT,
        "positions": Whole(0),
        "broken_positions": Whole(0),
        "largest_logit_error": Maybe(Number()),
        "mean_logit_error": Maybe(Number()),
        "largest_relative_error": Maybe(Number()),
        "mean_relative_error": Maybe(Number()),
        "reference_rms": Maybe(Number()),
        "kl_divergence": Maybe(Number()),
        "top1_agreement": AMOUNT,
        "top1_agreement_interval": Maybe(PAIR),
        "task": Maybe(Object(TASK_CHANGE, required=("metric",))),
        "task_absent": SENTENCE,
    }
)
STORAGE = Object({"kind": NAME, "file_system": REMARK, "device": REMARK}, required=("kind",))
DATA = Object(
    {
        "on": STORAGE,
        "bytes_per_step": Number(0),
        "prefetch": COUNT,
        "page_cache": Object(
            {"requested": NAME, "observed": NAME}, required=("requested", "observed")
        ),
    },
    required=("on", "bytes_per_step", "prefetch", "page_cache"),
)
STAGING = Object({"bytes": AMOUNT, "bytes_per_second": AMOUNT, "tier": NAME, "on": STORAGE})
ESTIMATE = Object({"value": Number(), "low": Maybe(Number()), "high": Maybe(Number())}, ("value",))
EXCHANGE = Object(
    {
        "backend": NAME,
        "ranks": COUNT,
        "bytes": AMOUNT,
        "seconds": ListOf(AMOUNT, least=1),
        "rank_seconds": ListOf(AMOUNT),
        "bus_bytes_per_second": AMOUNT,
        "tiny": Object({"seconds": ListOf(AMOUNT, least=1)}, required=("seconds",)),
        "latency_seconds": ESTIMATE,
        "bandwidth_bytes_per_second": Maybe(ESTIMATE),
    },
    required=("backend", "bytes", "seconds", "bus_bytes_per_second"),
)
PAUSE_COST = Object(
    {"turns": ListOf(ListOf(Number(), least=1), least=1), "pauses_seconds": ListOf(Number())},
    required=("turns", "pauses_seconds"),
)
MONITOR = Object(
    {
        "interval_seconds": AMOUNT,
        "first_ns": NANOSECONDS,
        "node": NAME,
        "cost": Object({"share": Number()}),
        "columns": Columns(Maybe(Number())),
        "absent": Either(SENTENCE, Either(ListOf(SENTENCE), Mapped(SENTENCE))),
        "problem": SENTENCE,
    }
)
CERTIFIED_ITEM = Object(
    {
        "item": NAME,
        "passed": Flag(),
        "weak": Flag(),
        "network": NAME,
        "where": REMARK,
        "error": Maybe(Number()),
        "bound": Maybe(Number()),
        "share": Maybe(Number()),
    },
    required=("item", "passed", "share"),
)
CERTIFICATE = Object(
    {
        "version": Text(),
        "covers": Choice(("training", "inference")),
        "items": ListOf(CERTIFIED_ITEM, least=1),
        "semantics": Object(
            {"certificate": REMARK, "passed": Flag(), "proves": ListOf(NAME), "reason": REMARK}
        ),
    },
    required=("version", "covers", "items"),
)
FINDINGS = Object(
    {
        "accuracy": ACCURACY,
        "task": Object(TASK_METRIC, required=("metric", "value", "interval")),
        "data": DATA,
        "staging": Maybe(STAGING),
        "exchange": EXCHANGE,
        "pause_cost": Maybe(PAUSE_COST),
        "monitor": Maybe(MONITOR),
        "certificate": Maybe(CERTIFICATE),
        # Where the time of the process went, by stage.
        "seconds": Mapped(AMOUNT),
    }
)
END = Object(
    {
        "ended": Date(),
        "measurement": Maybe(MEASUREMENT),
        "findings": FINDINGS,
        "failure": Maybe(FAILURE),
    },
    required=("ended", "measurement", "failure"),
)
LINES: dict[str, Kind] = {"begin": BEGIN, "context": CONTEXT, "sample": SAMPLE, "end": END}

# A result of another tool. Its numbers are kept as the tool wrote them.
IMPORTED_ROW = Object(
    {
        "id": NAME,
        "source": NAME,
        "original": IDENTIFIER,
        "file": SENTENCE,
        "location": SENTENCE,
        "started": Maybe(SENTENCE),
        "failure": SENTENCE,
        "dimensions": Mapped(ANYTHING),
        "metrics": Mapped(ANYTHING),
        "more": Mapped(ANYTHING),
        "defects": ListOf(SENTENCE),
        "quarantine": SENTENCE,
    },
    required=("source", "original", "file", "location"),
)


def line_problem(line: Any) -> str:
    """Why this line of a journal cannot be used; empty if it can.

    Lines with names of later versions are only bounded."""
    if not isinstance(line, dict):
        return "a line must be an object"
    name = line.get("line")
    if not isinstance(name, str):
        return "a line must have a name"
    problem = LINES.get(name, ANYTHING).problem(line, name)
    if name == "context" and not problem:
        problem = _unit_problem(line.get("network", {}))
    return problem


def _unit_problem(network: dict[str, Any]) -> str:
    """The throughput is that of the network's unit, so it must be counted."""
    counts = network.get("units_per_step")
    unit = network.get("unit", "samples")
    if isinstance(counts, dict) and unit not in counts:
        return f"context.network.units_per_step.{unit} is missing"
    return ""
