"""What differs between the two sides of a comparison: settings, machine, software, environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steptime.core.case import SETTINGS
from steptime.core.format import shorten
from steptime.core.record import Attempt

# By group, then by name: the values of A and of B, usually one each.
Group = dict[str, tuple[list[Any], list[Any]]]
Differences = dict[str, Group]
Facts = dict[str, Any]

MACHINE = (
    "host",
    "cpu",
    "architecture",
    "sockets",
    "cores",
    "threads_usable",
    "memory_gib",
    "numa_nodes",
    "kernel",
    "os",
    "libc",
    "clock_source",
)
HEALTH = ("governor", "turbo", "smt_shared", "virtualised")
# Drawn at random, or different in every job or process.
RANDOM = ("PYTHONHASHSEED", "padding_bytes", "slurm", "session_process")
# Set from the case, which lists them already.
FROM_CASE = ("wait_policy", "compile_cache")
SCALARS = (str, int, float)
LONGEST_VALUE = 32
MOST_VALUES = 3
# Not every system, and not every framework, reports each of these.
MAY_BE_UNKNOWN = ("machine", "program")


def differences(a: Sequence[Attempt], b: Sequence[Attempt]) -> Differences:
    """Over all processes of both sides. Only groups with a difference."""
    groups: dict[str, Callable[[Attempt], Facts]] = {
        "settings": _settings,
        "machine": _machine,
        "software": _software,
        "program": _program,
        "environment": _environment,
    }
    answer: Differences = {}
    for group, facts_of in groups.items():
        differing = _compare_facts([facts_of(side) for side in a], [facts_of(side) for side in b])
        if group in MAY_BE_UNKNOWN:
            differing = {name: values for name, values in differing.items() if _is_known(values)}
        if differing:
            answer[group] = differing
    return answer


def _is_known(values: tuple[list[Any], list[Any]]) -> bool:
    """Whether both sides have a value: an unknown one differs from nothing."""
    return all(side != [None] for side in values)


def _compare_facts(a: Sequence[Facts], b: Sequence[Facts]) -> Group:
    names = dict.fromkeys(name for facts in (*a, *b) for name in facts)
    differing = {}
    for name in names:
        first = _values(name, a)
        second = _values(name, b)
        if first != second:
            differing[name] = (first, second)
    return differing


def _values(name: str, side: Sequence[Facts]) -> list[Any]:
    """Without repetition, in a fixed order."""
    values: list[Any] = []
    for facts in side:
        if facts.get(name) not in values:
            values.append(facts.get(name))
    return sorted(values, key=str)


def _settings(attempt: Attempt) -> Facts:
    facts = {name: getattr(attempt.case, name) for name in SETTINGS}
    # Workers of a comparison take turns with a partner, which may slow them down.
    facts["measured_by"] = "compare" if attempt.pair else "run"
    facts["preset"] = attempt.protocol.preset
    return facts | {f"protocol.{name}": value for name, value in attempt.protocol.changes().items()}


def _machine(attempt: Attempt) -> Facts:
    machine = attempt.machine
    facts = {name: machine.get(name) for name in MACHINE}
    boards = machine.get("gpus") or []
    if "gpus" in machine:
        facts["gpus"] = " + ".join(board["name"] for board in boards) or "none"
    # A case that uses no GPU has no driver among its software.
    facts["driver"] = next((board.get("driver") for board in boards), None)
    facts["power_limit_w"] = next((board.get("power_limit_w") for board in boards), None)
    health = machine.get("health") or {}
    return facts | {name: health.get(name) for name in HEALTH}


def _software(attempt: Attempt) -> Facts:
    return {name: value for name, value in attempt.software.items() if name != "driver"}


def _program(attempt: Attempt) -> Facts:
    """The code of the lowering, and what the framework says about how it was set up."""
    facts: Facts = {f"{attempt.case.framework}_lowering": attempt.program or None}
    if attempt.measurement is None:
        return facts
    return facts | _scalars(attempt.measurement.facts, RANDOM)


def _environment(attempt: Attempt) -> Facts:
    return _scalars(attempt.environment, (*RANDOM, *FROM_CASE))


def _scalars(facts: Facts, without: Sequence[str]) -> Facts:
    """Lists and tables would not fit into a line."""
    scalars = {}
    for name, value in facts.items():
        if name not in without and isinstance(value, SCALARS):
            scalars[name] = value
    return scalars


def format_values(values: Sequence[Any]) -> str:
    """For people: `none`, `2.13.0+cpu`, `node1 or node2`."""
    texts = [_format_value(value) for value in values[:MOST_VALUES]]
    if len(values) > MOST_VALUES:
        texts.append("…")
    return " or ".join(texts)


def _format_value(value: Any) -> str:
    text = "none" if value in ("", None) else str(value)
    return shorten(text, LONGEST_VALUE)
