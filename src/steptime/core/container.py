"""What the machine file says of a container in which a worker is started. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from steptime.core.errors import SteptimeError, unknown

KINDS = ("podman", "docker", "apptainer", "bubblewrap")
MANAGED = ("podman", "docker")  # somebody else starts their processes, with variables of its own


@dataclass(frozen=True)
class Container:
    kind: str
    image: str  # a name, a .sif file, or a folder with a whole system: "/" is this machine's own
    python: str = "python3"  # inside
    options: tuple[str, ...] = ()  # further words before the image

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "options": list(self.options)}


KEYS = ("container", *(field.name for field in fields(Container) if field.name != "kind"))


def container(table: str, entry: dict[str, Any], where: Callable[[str], str]) -> Container:
    """`where` tells the line of a key."""
    for key, value in entry.items():
        if key not in KEYS:
            raise unknown(f"key of [{table}]", key, KEYS, where(key))
        if key == "options":
            if not isinstance(value, list) or not all(
                isinstance(word, str) and word for word in value
            ):
                raise SteptimeError(
                    f'{where(key)}options must be a list of words: ["--gpus=all"], found {value!r}.'
                )
        elif not isinstance(value, str) or not value:
            raise SteptimeError(f"{where(key)}{key} must be a text in quotes, found {value!r}.")
    if entry["container"] not in KINDS:
        raise unknown("container", entry["container"], KINDS, where("container"))
    if "image" not in entry:
        raise SteptimeError(
            f"{where('container')}[{table}] needs an image: a name, a .sif file or a folder."
        )
    given = {key: entry[key] for key in ("image", "python") if key in entry}
    return Container(entry["container"], **given, options=tuple(entry.get("options", ())))
