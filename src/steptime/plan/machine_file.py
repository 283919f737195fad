"""The machine file: what runs a framework here, what is asked of Slurm, where tiers lie. Reads text, not files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from steptime.core.case import Case
from steptime.core.container import Container, container
from steptime.core.errors import SteptimeError, unknown
from steptime.plan.parse import Lines, at
from steptime.plan.slurm_section import Section, section

PARTS = ("frameworks", "launches", "slurm", "tiers")
WAYS = ("python", "launch", "container")
Way = tuple[str, ...] | Container
"""Words that start a Python, or what to start it in."""


@dataclass(frozen=True)
class MachineFile:
    path: str = ""  # empty: there is none
    text: str = ""
    commands: dict[str, Way] = field(default_factory=dict)  # framework -> what starts its Python
    slurm: dict[str, Section] = field(
        default_factory=dict
    )  # kind of node -> what is asked of Slurm
    tiers: dict[str, str] = field(
        default_factory=dict
    )  # name -> folder, with variables of the node: $LOCAL
    launches: dict[str, Way] = field(
        default_factory=dict
    )  # name that a case may ask for -> what starts its Python

    def to_dict(self) -> dict[str, Any]:
        ways = {"frameworks": told(self.commands), "launches": told(self.launches)}
        return {"path": self.path, **ways, "slurm": sorted(self.slurm), "tiers": self.tiers}

    def way(self, case: Case) -> Way | None:
        """None: as steptime itself was started."""
        return self.launches.get(case.launch) if case.launch else self.commands.get(case.framework)

    def lacks(self, case: Case) -> str:
        """What the case asks for and the file cannot give; empty: nothing."""
        for part, name, known in (
            ("launches", case.launch, self.launches),
            ("tiers", case.staging, self.tiers),
        ):
            if name and name not in known:
                found = ", ".join(known) or "none"
                return (
                    f"[{part}] of the machine file has no {name!r}, found {found}. {ADVICE[part]}"
                )
        if case.nodes > 1 and isinstance(self.way(case), Container):
            return "A container holds the ranks of one node: srun would start those of the others outside of it."
        return ""

    def section(self, node_type: str) -> Section:
        """Where a case of this kind goes; one that names none goes to the only one."""
        if node_type in self.slurm:
            return self.slurm[node_type]
        if not self.slurm:
            found = f"{self.path} has none" if self.path else "there is no machine file"
            raise SteptimeError(
                f"[slurm.NAME] of a machine file says what to ask of Slurm; {found}. {ADVICE['slurm']}"
            )
        if node_type:
            raise unknown(
                "[slurm.…] for node_type", node_type, self.slurm, f"The machine file {self.path}: "
            )
        if len(self.slurm) == 1:
            return next(iter(self.slurm.values()))
        found = f"{self.path} has {', '.join(self.slurm)}"
        raise SteptimeError(
            f"A case needs a [slurm.NAME], found {found}. Set node_type to one of them in the plan."
        )


ADVICE = {
    "launches": "Say there what starts its Python.",
    "tiers": "Name its folder.",
    "slurm": "docs/machine-file.md shows one; --machine names it.",
}


def told(ways: dict[str, Way]) -> dict[str, Any]:
    return {
        name: way.to_dict() if isinstance(way, Container) else list(way)
        for name, way in ways.items()
    }


def parse(text: str, path: str, frameworks: Iterable[str]) -> MachineFile:
    try:
        reader = _Reader(text)
        commands, launches = reader.commands(set(frameworks)), reader.launches()
        return MachineFile(path, text, commands, reader.slurm(), reader.tiers(), launches)
    except SteptimeError as problem:
        raise SteptimeError(f"The machine file {path}: {problem}") from None


class _Reader:
    def __init__(self, text: str) -> None:
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise SteptimeError(f"this is not TOML: {problem}.") from None
        self.lines = Lines(text)
        for key in self.content:
            if key not in PARTS:
                raise unknown("part", key, PARTS, at(self.lines.of((key, 0, ""), ("", 0, key))))

    def commands(self, known: set[str]) -> dict[str, Way]:
        found = self._table("frameworks", "write [frameworks.NAME], and `python` below.")
        for name in found:
            if name not in known:
                raise unknown("framework", name, known, self._line("frameworks", name))
        return {name: self._way("frameworks", name, entry) for name, entry in found.items()}

    def launches(self) -> dict[str, Way]:
        found = self._table(
            "launches", "write [launches.NAME], and `python`, `launch` or `container` below."
        )
        return {name: self._way("launches", name, entry) for name, entry in found.items()}

    def slurm(self) -> dict[str, Section]:
        found = self._table("slurm", "write [slurm.NAME], and `partition` below.")
        for name, entry in found.items():
            if not isinstance(entry, dict):
                raise SteptimeError(
                    f'{self._line("slurm", name)}write [slurm.{name}], and partition = "…" below.'
                )
        return {
            name: section(name, entry, partial(self._line, f"slurm.{name}"))
            for name, entry in found.items()
        }

    def tiers(self) -> dict[str, str]:
        found = self._table("tiers", 'write [tiers], and local = "$LOCAL" below.')
        for name, folder in found.items():
            if not isinstance(folder, str) or not folder:
                raise SteptimeError(
                    f"{self._line('tiers', name)}{name} must be a folder in quotes, found {folder!r}."
                )
        return found

    def _table(self, name: str, advice: str) -> dict[str, Any]:
        found = self.content.get(name, {})
        if not isinstance(found, dict):
            raise SteptimeError(f"{self._line('', name)}{advice}")
        return found

    def _line(self, table: str, key: str) -> str:
        return at(self.lines.of((table, 0, key), (f"{table}.{key}", 0, ""), (table, 0, "")))

    def _way(self, part: str, name: str, entry: Any) -> Way:
        table = f"{part}.{name}"
        where = partial(self._line, table)
        if not isinstance(entry, dict):
            raise SteptimeError(
                f'{self._line(part, name)}write [{table}], and python = "…/bin/python" below.'
            )
        if "container" in entry:
            return container(table, entry, where)
        for key in entry:
            if key not in WAYS:
                raise unknown(f"key of [{table}]", key, WAYS, where(key))
        if len(entry) != 1:
            raise SteptimeError(f"{where('')}[{table}] needs one of python, launch and container.")
        ((key, value),) = entry.items()
        words = [value] if key == "python" else value
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(word, str) and word for word in words)
        ):
            kind = (
                "a text in quotes"
                if key == "python"
                else 'a list of words: ["podman", "run", …, "python"]'
            )
            raise SteptimeError(f"{where(key)}{key} must be {kind}, found {value!r}.")
        return tuple(words)
