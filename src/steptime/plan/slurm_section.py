"""`[slurm.NAME]` of the machine file: what a case for this node type asks of Slurm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown

# Each is a flag of sbatch. A value may contain settings of the case: "gpu:k80:{devices}".
FLAGS = {
    "partition": "--partition",
    "gres": "--gres",
    "constraint": "--constraint",
    "account": "--account",
    "qos": "--qos",
    "time": "--time",
    "memory": "--mem",
    "cpus": "--cpus-per-task",
}
# These can change what is measured. The others only say how it is allowed to run.
SHAPING = ("partition", "gres", "constraint", "cpus", "setup", "environment", "options")


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
    options: tuple[str, ...] = ()  # further arguments of sbatch
    setup: tuple[str, ...] = ()  # shell lines before the first process: module load …
    environment: tuple[tuple[str, str], ...] = ()
    throttle: int = 0  # most tasks of an array at once; 0: as many as Slurm allows
    bundle: int = 1  # processes one after the other in one array task, and so on one node

    def request(self, case: Case) -> tuple[str, ...]:
        """The arguments of sbatch for this case."""
        arguments = []
        for name, flag in FLAGS.items():
            if getattr(self, name):
                arguments.append(f"{flag}={self._fill_in(name, case)}")
        if case.ranks > 1 and case.nodes > 1:
            # One task has all that the job has on a node; srun shares it among the node's ranks.
            arguments += [f"--nodes={case.nodes}", "--ntasks-per-node=1"]
        return (*arguments, *self.options)

    def shape(self) -> dict[str, Any]:
        """What makes two campaigns different: more time or another account does not."""
        return {name: getattr(self, name) for name in SHAPING}

    def _fill_in(self, name: str, case: Case) -> str:
        text: str = getattr(self, name)
        where = f"[slurm.{self.name}] {name} = {text!r}: "
        try:
            return text.format_map({**case.to_dict(), "devices": _devices_per_node(case)})
        except KeyError as problem:
            raise unknown("case setting", problem.args[0], SETTINGS, where) from None
        except (ValueError, IndexError):
            raise SteptimeError(f"{where}write {{devices}}, for example.") from None


def _devices_per_node(case: Case) -> int:
    """Slurm's requests count per node."""
    return case.ranks_per_node if case.ranks > 1 else case.devices


def parse_section(name: str, entry: dict[str, Any], where: Callable[[str], str]) -> Section:
    """`where` gives the line prefix of a key."""
    keys = [field.name for field in fields(Section) if field.name != "name"]
    values = {}
    for key, value in entry.items():
        if key not in keys:
            raise unknown(f"key of [slurm.{name}]", key, keys, where(key))
        values[key] = _parse_value(key, value, where(key))
    return Section(name=name, **values)


def _parse_value(key: str, value: Any, where: str) -> Any:
    if key in ("throttle", "bundle"):
        return _check_count(key, value, where)
    if key in ("setup", "options"):
        if not isinstance(value, list) or not all(_is_line(line) for line in value):
            raise SteptimeError(
                f"{where}{key} must be a list of texts, each one line, found {value!r}."
            )
        return tuple(value)
    if key == "environment":
        if not isinstance(value, dict) or not all(_is_line(text) for text in value.values()):
            raise SteptimeError(
                f"{where}environment must be a table of texts: "
                f'{{ NAME = "value" }}, found {value!r}.'
            )
        return tuple(sorted(value.items()))
    # These may be plain numbers in TOML.
    if key in ("cpus", "memory", "time") and type(value) is int:
        return str(value)
    if not _is_line(value):
        raise SteptimeError(f"{where}{key} must be a text in quotes, found {value!r}.")
    return value


def _check_count(key: str, value: Any, where: str) -> int:
    least = 1 if key == "bundle" else 0
    if type(value) is not int or value < least:
        raise SteptimeError(
            f"{where}{key} must be a whole number of at least {least}, found {value!r}."
        )
    return value


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value
