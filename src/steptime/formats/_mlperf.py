"""What all MLPerf files share: their folders, the description of a system, accuracies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from steptime.formats import Original
from steptime.formats._parse import (
    clean_text,
    framework,
    integer,
    number,
    parse_json,
    version,
)

# inference_results_v4.1, training-v0.7
ROUND = re.compile(r"(inference|training|tiny)[-_](?:results[-_])?(v\d+\.\d+)")
# How submitters write that there is nothing to say.
EMPTY = {"", "n/a", "na", "none", "todo", "-", "tbd", "null"}


@dataclass(frozen=True)
class ResultPath:
    """…/SUBMITTER/results/SYSTEM/BENCHMARK[/SCENARIO]/…"""

    submitter: str = ""
    system: str = ""
    benchmark: str = ""
    scenario: str = ""
    suite: str = ""
    # From the file's folder to the submitter's.
    up: str = ""

    @property
    def dimensions(self) -> dict[str, Any]:
        return {
            "submitter": self.submitter,
            "model": self.benchmark,
            "suite": self.suite,
            "server": self.system,
        }


def locate_result(file: Original) -> ResultPath:
    names = file.folders.parts
    match = ROUND.search(str(file.folders))
    suite = f"MLPerf {match[1].capitalize()} {match[2]}" if match else ""
    if "results" not in names[:-1]:
        return ResultPath(suite=suite)
    # The last folder of this name: a submitter may call one of its own so.
    at = len(names) - 1 - names[::-1].index("results")
    below = [*names[at + 1 : -1], "", "", ""]
    return ResultPath(
        submitter=names[at - 1] if at else "",
        system=below[0],
        benchmark=below[1],
        scenario=below[2],
        suite=suite,
        up="../" * (len(names) - 1 - at),
    )


def described_system(file: Original, path: ResultPath) -> dict[str, Any]:
    """The dimensions in the system's description, if it lies where MLPerf's rules want it."""
    if not path.system:
        return {}
    neighbour = file.neighbour(f"{path.up}systems/{path.system}.json")
    description = parse_json(neighbour.text) if neighbour else None
    if not isinstance(description, dict):
        return {}
    return {name: value for name, value in system(description).items() if value}


def system(description: dict[str, Any]) -> dict[str, Any]:
    """The processors of a machine without accelerators are its devices."""
    nodes = integer(description.get("number_of_nodes")) or 1
    per_node = integer(description.get("accelerators_per_node")) or 0
    device = description.get("accelerator_model_name")
    if not per_node:
        device = description.get("host_processor_model_name")
        per_node = integer(description.get("host_processors_per_node")) or 1
    return {
        "device": known_text(device),
        "devices": nodes * per_node,
        "nodes": nodes,
        "interconnect": known_text(description.get("accelerator_interconnect")),
        "server": known_text(description.get("system_name")),
        "submitter": known_text(description.get("submitter")),
        **software(description.get("framework")),
    }


def software(value: Any) -> dict[str, Any]:
    text = known_text(value)
    return {"framework": framework(text), "framework_version": version(text), "software": text}


def known_text(value: Any) -> str:
    """Empty for the many ways of writing that there is none."""
    text = clean_text(value)
    return "" if text.lower() in EMPTY else text


def accuracy(value: Any) -> float | None:
    """As a share. Scores like ROUGE, which are several numbers, are no share."""
    parsed = number(value)
    if parsed is None or not 0 <= parsed <= 100:
        return None
    return parsed / 100 if parsed > 1 else parsed
