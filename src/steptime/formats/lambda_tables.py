"""Lambda's tables of training throughput: a row per system, a column per network.

The precision is in the file's name."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    clean_text,
    integer,
    located_rows,
    number,
    table_rows,
)

TITLE = "Lambda throughput tables"
NAME = re.compile(
    r"(?P<framework>tf|pytorch)-train-(?P<what>throughput|bs)(?P<rest>-v\d)?"
    r"-(?P<precision>fp\d+)\.(?:csv|json)"
)
# What a throughput counts; images for all other networks.
UNITS = {
    "bert_base_squad": "sequences",
    "bert_large_squad": "sequences",
    "gnmt": "tokens",
    "ncf": "samples",
    "tacotron2": "samples",
    "transformerxlbase": "tokens",
    "transformerxllarge": "tokens",
    "waveglow": "samples",
}
# Columns that are no network.
NO_NETWORK = {"", "name_gpu", "num_gpu", "watt", "price"}
# LambdaBM_ENG04_8xH200_140GB_SXM_h200_v2: maker, 8 of H200, memory, form, host
SYSTEM = re.compile(
    r"(?P<devices>\d+)x(?P<device>(?!_)[A-Za-z0-9-]+(?:_[\d.]+GB)?(?:_(?:SXM\d?|PCIe\w*))?)"
)


class System(NamedTuple):
    name: str
    device: str
    devices: int | None


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"[":
        return b'"name_gpu"' in head and b'"num_gpu"' in head
    first_line = head.split(b"\n", 1)[0].strip()
    return first_line.startswith((b"name_gpu,num_gpu,", b",ssd,bert_base_squad"))


def read(file: Original) -> Rows:
    match = NAME.search(file.folders.name)
    settings = match.groupdict() if match else {}
    is_json = file.text.lstrip()[:1] == "["
    if is_json and file.neighbour(f"{file.folders.stem}.csv"):
        yield Skipped("file", "the same table as the CSV beside it")
        return
    if settings.get("what") == "bs":
        yield Skipped("file", "batch sizes: used by the throughput table beside it")
        return
    batches = _batches(file)
    for location, row in located_rows(file.text):
        system = _system(row)
        for network in row:
            if network not in NO_NETWORK:
                batch = integer(batches.get(system.name, {}).get(network))
                cell = f"{location}, {network}"
                yield _read_cell(file, cell, row, system, network, settings | {"batch": batch})


def _batches(file: Original) -> dict[str, dict[str, str]]:
    """Batch sizes by system and network, from the table beside it."""
    neighbour = file.neighbour(file.folders.name.replace("throughput", "bs"))
    if neighbour is None:
        return {}
    return {row["name_gpu"]: row for _, row in table_rows(neighbour.text) if "name_gpu" in row}


def _system(row: dict[str, Any]) -> System:
    name = clean_text(row.get("name_gpu") or row.get(""))
    match = SYSTEM.search(name)
    devices = integer(row.get("num_gpu"))
    if not devices and match:
        devices = int(match["devices"])
    if match and "num_gpu" not in row:
        device = match["device"].replace("_", " ")
    else:
        device = re.sub(r"^\d+x ", "", name)
    return System(name, device, devices or None)


def _read_cell(
    file: Original,
    location: str,
    row: dict[str, Any],
    system: System,
    network: str,
    settings: dict[str, Any],
) -> Row:
    speed = number(row[network])
    if not speed:
        reason = "no throughput" if speed is None else "a throughput of zero: not measured"
        return Skipped(location, reason)
    batch = settings["batch"]
    devices = system.devices
    # Unknown unless the devices share the batch evenly.
    replica_batch = None
    if batch and devices and batch % devices == 0:
        replica_batch = batch // devices
    return file.run(
        location,
        {
            "model": network,
            "phase": "training",
            "device": system.device,
            "devices": devices,
            "effective_batch": batch,
            "framework": "tensorflow" if settings.get("framework") == "tf" else "pytorch",
            "suite": "Lambda",
            "precision": settings.get("precision"),
            "unit": UNITS.get(network, "images"),
            "server": system.name,
            "replica_batch": replica_batch,
        },
        {"throughput": speed, "throughput_per_device": speed / devices if devices else None},
        more={"watt": number(row.get("watt")), "price": number(row.get("price"))},
    )
