"""What all MLPerf files have in common: where they lie, how a system is described, how accuracy is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from steptime.formats import Original
from steptime.formats._parse import framework, number, parsed, spelled, version, whole

ROUND = re.compile(r"(inference|training|tiny)[-_](?:results[-_])?(v\d+\.\d+)")
UNSAID = {"", "n/a", "na", "none", "todo", "-", "tbd", "null"}


@dataclass(frozen=True)
class Placed:
    """…/SUBMITTER/results/SYSTEM/BENCHMARK[/SCENARIO]/…"""

    submitter: str = ""
    system: str = ""
    benchmark: str = ""
    scenario: str = ""
    suite: str = ""
    up: str = ""  # from the file's folder to the submitter's

    @property
    def dimensions(self) -> dict[str, Any]:
        return {
            "submitter": self.submitter,
            "model": self.benchmark,
            "suite": self.suite,
            "server": self.system,
        }


def placed(file: Original) -> Placed:
    parts = file.folders.parts
    found = ROUND.search(str(file.folders))
    suite = f"MLPerf {found[1].capitalize()} {found[2]}" if found else ""
    if "results" not in parts[:-1]:
        return Placed(suite=suite)
    at = len(parts) - 1 - parts[::-1].index("results")
    names = [*parts[at + 1 : -1], "", "", ""]
    submitter = parts[at - 1] if at else ""
    return Placed(submitter, names[0], names[1], names[2], suite, "../" * (len(parts) - 1 - at))


def described(file: Original, where: Placed) -> dict[str, Any]:
    """The dimensions that the system's description tells, where it lies where the rules want it."""
    neighbour = file.neighbour(f"{where.up}systems/{where.system}.json") if where.system else None
    values = parsed(neighbour.text) if neighbour else None
    return system(values) if isinstance(values, dict) else {}


def system(values: dict[str, Any]) -> dict[str, Any]:
    """Of a machine without accelerators the processors are the devices. Numbers are often texts, and nodes a text."""
    nodes = whole(values.get("number_of_nodes")) or 1
    each = whole(values.get("accelerators_per_node")) or 0
    kind, per_node = values.get("accelerator_model_name"), each
    if not each:
        kind, per_node = (
            values.get("host_processor_model_name"),
            whole(values.get("host_processors_per_node")) or 1,
        )
    return {
        "device": said(kind),
        "devices": nodes * per_node,
        "nodes": nodes,
        "interconnect": said(values.get("accelerator_interconnect")),
        "server": said(values.get("system_name")),
        "submitter": said(values.get("submitter")),
        **software(values.get("framework")),
    }


def software(text: Any) -> dict[str, Any]:
    words = said(text)
    return {"framework": framework(words), "framework_version": version(words), "software": words}


def said(value: Any) -> str:
    text = spelled(value)
    return "" if text.lower() in UNSAID else text


def accuracy(value: Any) -> float | None:
    """As a share. Scores like ROUGE, which are several numbers, are no share."""
    found = number(value)
    if found is None or found < 0:
        return None
    return found / 100 if 1 < found <= 100 else found if found <= 1 else None
