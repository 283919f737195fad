"""The machine file: how frameworks are started here, what to ask of Slurm, where tiers lie.

Takes text and reads no file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from steptime.core.case import Case
from steptime.core.container import Container, parse_container
from steptime.core.errors import SteptimeError, unknown
from steptime.plan.parse import Lines, Position, line_prefix
from steptime.plan.slurm_section import Section, parse_section

TABLES = ("frameworks", "launches", "slurm", "tiers")
WAYS = ("python", "launch", "container")
ADVICE = {
    "launches": "Say there what starts its Python.",
    "tiers": "Name its folder.",
    "slurm": "docs/machine-file.md shows one; --machine names it.",
}
Way = tuple[str, ...] | Container
"""A command that starts a Python, or the container to start it in."""


@dataclass(frozen=True)
class MachineFile:
    path: str = ""  # empty: there is none
    text: str = ""
    # By framework: what starts its Python.
    commands: dict[str, Way] = field(default_factory=dict)
    # By node type: what to ask of Slurm.
    slurm: dict[str, Section] = field(default_factory=dict)
    # Folders by name. They may contain variables of the node: $LOCAL.
    tiers: dict[str, str] = field(default_factory=dict)
    # By the name that a case may ask for: what starts its Python.
    launches: dict[str, Way] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "frameworks": describe_ways(self.commands),
            "launches": describe_ways(self.launches),
            "slurm": sorted(self.slurm),
            "tiers": self.tiers,
        }

    def way(self, case: Case) -> Way | None:
        """None: start the worker as steptime itself was started."""
        if case.launch:
            return self.launches.get(case.launch)
        return self.commands.get(case.framework)

    def lacks(self, case: Case) -> str:
        """What the case asks for and the file cannot give; empty if nothing."""
        if case.launch and case.launch not in self.launches:
            return _describe_missing("launches", case.launch, self.launches)
        if case.staging and case.staging not in self.tiers:
            return _describe_missing("tiers", case.staging, self.tiers)
        if case.nodes > 1 and isinstance(self.way(case), Container):
            return (
                "A container holds the ranks of one node: "
                "srun would start those of the other nodes outside of it."
            )
        return ""

    def section(self, node_type: str) -> Section:
        """Where a case of this node type goes. A case without one goes to the only section."""
        if node_type in self.slurm:
            return self.slurm[node_type]
        if not self.slurm:
            state = f"{self.path} has none" if self.path else "there is no machine file"
            raise SteptimeError(
                f"[slurm.NAME] of a machine file says what to ask of Slurm; {state}. "
                f"{ADVICE['slurm']}"
            )
        if node_type:
            where = f"The machine file {self.path}: "
            raise unknown("[slurm.…] for node_type", node_type, self.slurm, where)
        if len(self.slurm) == 1:
            return next(iter(self.slurm.values()))
        raise SteptimeError(
            f"A case needs a [slurm.NAME], found {self.path} has {', '.join(self.slurm)}. "
            "Set node_type to one of them in the plan."
        )


def _describe_missing(table: str, name: str, entries: Iterable[str]) -> str:
    names = ", ".join(entries) or "none"
    return f"[{table}] of the machine file has no {name!r}, found {names}. {ADVICE[table]}"


def describe_ways(ways: dict[str, Way]) -> dict[str, Any]:
    descriptions: dict[str, Any] = {}
    for name, way in ways.items():
        descriptions[name] = way.to_dict() if isinstance(way, Container) else list(way)
    return descriptions


def parse(text: str, path: str, frameworks: Iterable[str]) -> MachineFile:
    try:
        reader = _Reader(text)
        return MachineFile(
            path=path,
            text=text,
            commands=reader.commands(set(frameworks)),
            launches=reader.launches(),
            slurm=reader.slurm(),
            tiers=reader.tiers(),
        )
    except SteptimeError as problem:
        raise SteptimeError(f"The machine file {path}: {problem}") from None


class _Reader:
    def __init__(self, text: str) -> None:
        try:
            self.content = tomllib.loads(text)
        # ValueError also for a number of thousands of digits.
        except (ValueError, RecursionError) as problem:
            raise SteptimeError(f"this is not TOML: {problem}.") from None
        self.lines = Lines(text)
        for key in self.content:
            if key not in TABLES:
                line = self.lines.find(Position(key), Position("", key=key))
                raise unknown("part", key, TABLES, line_prefix(line))

    def commands(self, frameworks: set[str]) -> dict[str, Way]:
        entries = self._table("frameworks", "write [frameworks.NAME], and `python` below.")
        for name in entries:
            if name not in frameworks:
                raise unknown("framework", name, frameworks, self._where("frameworks", name))
        return {name: self._way("frameworks", name, entry) for name, entry in entries.items()}

    def launches(self) -> dict[str, Way]:
        advice = "write [launches.NAME], and `python`, `launch` or `container` below."
        entries = self._table("launches", advice)
        return {name: self._way("launches", name, entry) for name, entry in entries.items()}

    def slurm(self) -> dict[str, Section]:
        entries = self._table("slurm", "write [slurm.NAME], and `partition` below.")
        sections = {}
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                where = self._where("slurm", name)
                raise SteptimeError(f'{where}write [slurm.{name}], and partition = "…" below.')
            sections[name] = parse_section(name, entry, partial(self._where, f"slurm.{name}"))
        return sections

    def tiers(self) -> dict[str, str]:
        tiers = self._table("tiers", 'write [tiers], and local = "$LOCAL" below.')
        for name, folder in tiers.items():
            if not isinstance(folder, str) or not folder:
                where = self._where("tiers", name)
                raise SteptimeError(f"{where}{name} must be a folder in quotes, found {folder!r}.")
        return tiers

    def _table(self, name: str, advice: str) -> dict[str, Any]:
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            raise SteptimeError(f"{self._where('', name)}{advice}")
        return table

    def _where(self, table: str, key: str) -> str:
        line = self.lines.find(
            Position(table, key=key), Position(f"{table}.{key}"), Position(table)
        )
        return line_prefix(line)

    def _way(self, parent: str, name: str, entry: Any) -> Way:
        table = f"{parent}.{name}"
        where = partial(self._where, table)
        if not isinstance(entry, dict):
            raise SteptimeError(
                f'{self._where(parent, name)}write [{table}], and python = "…/bin/python" below.'
            )
        # A container has several keys, all other ways have exactly one.
        if "container" in entry:
            return parse_container(table, entry, where)
        for key in entry:
            if key not in WAYS:
                raise unknown(f"key of [{table}]", key, WAYS, where(key))
        if len(entry) != 1:
            raise SteptimeError(f"{where('')}[{table}] needs one of python, launch and container.")
        ((key, value),) = entry.items()
        return _parse_command(key, value, where(key))


def _parse_command(key: str, value: Any, where: str) -> tuple[str, ...]:
    if key == "python":
        expected = "a text in quotes"
        command = [value]
    else:
        expected = 'a list of words: ["podman", "run", …, "python"]'
        command = value if isinstance(value, list) else []
    if not command or not all(isinstance(argument, str) and argument for argument in command):
        raise SteptimeError(f"{where}{key} must be {expected}, found {value!r}.")
    return tuple(command)
