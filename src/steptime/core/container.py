"""A container of the machine file, in which a worker is started. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from steptime.core.errors import SteptimeError, unknown

KINDS = ("podman", "docker", "apptainer", "bubblewrap")
# A daemon or a monitor process starts their processes, with variables of its own.
MANAGED = ("podman", "docker")


@dataclass(frozen=True)
class Container:
    kind: str
    image: str  # a name, a .sif file, or a folder with a whole system: "/" is this machine's own
    python: str = "python3"  # inside
    options: tuple[str, ...] = ()  # further arguments before the image

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "options": list(self.options)}


KEYS = ("container", *(field.name for field in fields(Container) if field.name != "kind"))


def parse_container(table: str, entry: dict[str, Any], where: Callable[[str], str]) -> Container:
    """`where` gives the line prefix of a key."""
    for key, value in entry.items():
        if key not in KEYS:
            raise unknown(f"key of [{table}]", key, KEYS, where(key))
        _check_value(key, value, where(key))
    if entry["container"] not in KINDS:
        raise unknown("container", entry["container"], KINDS, where("container"))
    if "image" not in entry:
        raise SteptimeError(
            f"{where('container')}[{table}] needs an image: a name, a .sif file or a folder."
        )
    return Container(
        kind=entry["container"],
        image=entry["image"],
        python=entry.get("python", Container.python),
        options=tuple(entry.get("options", ())),
    )


def _check_value(key: str, value: Any, where: str) -> None:
    if key == "options":
        if not isinstance(value, list) or not all(_is_text(option) for option in value):
            raise SteptimeError(
                f'{where}options must be a list of words: ["--gpus=all"], found {value!r}.'
            )
    elif not _is_text(value):
        raise SteptimeError(f"{where}{key} must be a text in quotes, found {value!r}.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""
