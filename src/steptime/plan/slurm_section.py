"""`[slurm.NAME]` of the machine file: what a case that goes to this kind of node asks Slurm for. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown

# Of these sbatch has a flag each; a value may hold settings of the case: "gpu:k80:{devices}".
FLAGS = {
    "partition": "--partition", "gres": "--gres", "constraint": "--constraint", "account": "--account",
    "qos": "--qos", "time": "--time", "memory": "--mem", "cpus": "--cpus-per-task",
}  # fmt: skip
SHAPING = ("partition", "gres", "constraint", "cpus", "setup", "environment", "options")
"""Those that can change what is measured. The others say how it is allowed to run."""


@dataclass(frozen=True, kw_only=True)
class Section:
    name: str
    partition: str = ""
    gres: str = ""
    constraint: str = ""
    account: str = ""
    qos: str = ""
    time: str = ""
    memory: str = ""
    cpus: str = ""
    options: tuple[str, ...] = ()  # further words for sbatch, as they are
    setup: tuple[str, ...] = ()  # shell lines before the first process: module load …
    environment: tuple[tuple[str, str], ...] = ()
    throttle: int = 0  # tasks of one array that run at once; 0: as many as Slurm lets
    bundle: int = 1  # processes one after the other in one array task, and so on one node

    def request(self, case: Case) -> tuple[str, ...]:
        """What sbatch is told for this case."""
        words = (
            f"{flag}={self._filled(name, case)}"
            for name, flag in FLAGS.items()
            if getattr(self, name)
        )
        # One task has all that a node gives to the job; srun shares it out among the ranks of the node.
        spread = (
            (f"--nodes={case.nodes}", "--ntasks-per-node=1")
            if case.ranks > 1 and case.nodes > 1
            else ()
        )
        return (*words, *spread, *self.options)

    def shape(self) -> dict[str, Any]:
        """What makes two campaigns different: more time or another account does not."""
        return {name: getattr(self, name) for name in SHAPING}

    def _filled(self, name: str, case: Case) -> str:
        text: str = getattr(self, name)
        try:
            return text.format_map({**case.to_dict(), "devices": _per_node(case)})
        except KeyError as problem:
            where = f"[slurm.{self.name}] {name} = {text!r}: "
            raise unknown("case setting", problem.args[0], SETTINGS, where) from None
        except (ValueError, IndexError):
            raise SteptimeError(
                f"[slurm.{self.name}] {name} = {text!r}: write {{devices}}, for example."
            ) from None


def _per_node(case: Case) -> int:
    """What Slurm is asked for is asked of each node."""
    return case.ranks_per_node if case.ranks > 1 else case.devices


def section(name: str, entry: dict[str, Any], where: Callable[[str], str]) -> Section:
    """`where` tells the line of a key."""
    known = [field.name for field in fields(Section) if field.name != "name"]
    for key in entry:
        if key not in known:
            raise unknown(f"key of [slurm.{name}]", key, known, where(key))
    return Section(
        name=name, **{key: _value(key, value, where(key)) for key, value in entry.items()}
    )


def _value(key: str, value: Any, where: str) -> Any:
    if key in ("throttle", "bundle"):
        least = 1 if key == "bundle" else 0
        if type(value) is not int or value < least:
            raise SteptimeError(
                f"{where}{key} must be a whole number of at least {least}, found {value!r}."
            )
        return value
    if key in ("setup", "options"):
        if not isinstance(value, list) or not all(_is_line(line) for line in value):
            raise SteptimeError(
                f"{where}{key} must be a list of texts, each one line, found {value!r}."
            )
        return tuple(value)
    if key == "environment":
        if not isinstance(value, dict) or not all(_is_line(text) for text in value.values()):
            raise SteptimeError(
                f'{where}environment must be a table of texts: {{ NAME = "value" }}, found {value!r}.'
            )
        return tuple(sorted(value.items()))
    if key in ("cpus", "memory", "time") and type(value) is int:
        return str(value)
    if not _is_line(value):
        raise SteptimeError(f"{where}{key} must be a text in quotes, found {value!r}.")
    return value


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value
