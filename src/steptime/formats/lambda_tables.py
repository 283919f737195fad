"""Lambda's tables of training throughput: one row a system, one column a network, the precision in the file's name."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original, Skipped
from steptime.formats._parse import number, objects, spelled, table, whole

TITLE = "Lambda throughput tables"
NAME = re.compile(
    r"(?P<framework>tf|pytorch)-train-(?P<what>throughput|bs)(?P<rest>-v\d)?-(?P<precision>fp\d+)\.(?:csv|json)"
)
UNITS = {
    "bert_base_squad": "sequences", "bert_large_squad": "sequences", "gnmt": "tokens", "ncf": "samples",
    "tacotron2": "samples", "transformerxlbase": "tokens", "transformerxllarge": "tokens", "waveglow": "samples",
}  # fmt: skip
NO_NETWORK = {"", "name_gpu", "num_gpu", "watt", "price"}
# LambdaBM_ENG04_8xH200_140GB_SXM_h200_v2: maker, 8 of H200, memory, form, host
SYSTEM = re.compile(
    r"(?P<devices>\d+)x(?P<device>(?!_)[A-Za-z0-9-]+(?:_[\d.]+GB)?(?:_(?:SXM\d?|PCIe\w*))?)"
)


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"[":
        return b'"name_gpu"' in head and b'"num_gpu"' in head
    first = head.split(b"\n", 1)[0].strip()
    return first.startswith(b"name_gpu,num_gpu,") or first.startswith(b",ssd,bert_base_squad")


def read(file: Original) -> Found:
    found = NAME.search(file.folders.name)
    told = found.groupdict() if found else {}
    if file.text.lstrip()[:1] == "[":
        if file.neighbour(f"{file.folders.stem}.csv"):
            yield Skipped("file", "the same table as the CSV beside it")
            return
        rows: list[tuple[str, dict[str, Any]]] = objects(file.text)
    else:
        rows = [(f"line {line}", dict(row)) for line, row in table(file.text)]
    if told.get("what") == "bs":
        yield Skipped("file", "batch sizes: used by the throughput table beside it")
        return
    batches = _batches(file)
    for place, row in rows:
        yield from _cells(file, place, row, told | {"batches": batches})


def _batches(file: Original) -> dict[str, dict[str, str]]:
    neighbour = file.neighbour(file.folders.name.replace("throughput", "bs"))
    return (
        {row["name_gpu"]: row for _, row in table(neighbour.text) if "name_gpu" in row}
        if neighbour
        else {}
    )


def _cells(file: Original, place: str, row: dict[str, Any], told: dict[str, Any]) -> Found:
    name = spelled(row.get("name_gpu") or row.get(""))
    system = SYSTEM.search(name)
    devices = whole(row.get("num_gpu")) or (int(system["devices"]) if system else None)
    device = (
        system["device"].replace("_", " ")
        if system and "num_gpu" not in row
        else re.sub(r"^\d+x ", "", name)
    )
    batches = told["batches"].get(name, {})
    for network in (column for column in row if column not in NO_NETWORK):
        speed, batch = number(row[network]), whole(batches.get(network))
        if not speed:
            yield Skipped(
                f"{place}, {network}",
                "no throughput" if speed is None else "a throughput of zero: not measured",
            )
            continue
        yield file.run(
            f"{place}, {network}",
            {
                "model": network, "phase": "training", "device": device, "devices": devices, "effective_batch": batch,
                "framework": "tensorflow" if told.get("framework") == "tf" else "pytorch", "suite": "Lambda",
                "precision": told.get("precision"), "unit": UNITS.get(network, "images"), "server": name,
                "replica_batch": batch // devices if batch and devices and batch % devices == 0 else None,
            },
            {"throughput": speed, "throughput_per_device": speed / devices if devices else None},
            more={"watt": number(row.get("watt")), "price": number(row.get("price"))},
        )  # fmt: skip
