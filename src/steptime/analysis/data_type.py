"""Where the batches of a record came from, in terms that people choose by."""

from __future__ import annotations

from typing import Any

from steptime.core.format import byte_count
from steptime.core.record import Record

SYNTHETIC = {"device": "synthetic on device", "host": "synthetic in host memory"}
REAL = {
    "dram": "real in DRAM",
    "nvme": "real on NVMe",
    "ssd": "real on SSD",
    "disk": "real on disk",
    "network": "real in a network directory",
}


def data_type(record: Record) -> str:
    """By the storage that held the files. The tier's name follows, to tell two of a type apart.

    Older stores have synthetic batches with a tier, from which nothing was read."""
    case = record.case
    text = SYNTHETIC.get(case.data) or _real_data(record)
    return f"{text} ({case.staging})" if case.staging else text


def _real_data(record: Record) -> str:
    facts = _data_facts(record)
    storage = facts.get("on", {}).get("kind", "")
    text = REAL.get(storage, "real")
    if facts.get("page_cache", {}).get("observed") == "cold":
        text += ", cold"
    return text


def sentence(record: Record) -> str:
    """For a single result; empty if nothing was read."""
    facts = _data_facts(record)
    if not facts:
        return ""
    storage = facts["on"]
    cache = facts.get("page_cache", {})
    names = [str(storage[name]) for name in ("file_system", "device") if name in storage]
    source = f"{data_type(record)} [{', '.join(names)}]"
    size = byte_count(facts["bytes_per_step"])
    prefetch = f", {facts['prefetch']} kept ready by a thread" if facts["prefetch"] else ""
    text = f"{source}, {size} a step{prefetch}; page cache {cache['observed']}"
    if cache["observed"] != cache["requested"]:
        text += f", though {cache['requested']} was requested"
    return text


def staging_sentence(record: Record) -> str:
    """Empty if nothing was copied."""
    facts = record.last.findings.get("staging") or {}
    if "bytes_per_second" not in facts:
        return ""
    size = byte_count(facts["bytes"])
    rate = byte_count(int(facts["bytes_per_second"]))
    return f"{size} copied to {facts['tier']} ({facts['on']['kind']}) at {rate}/s"


def _data_facts(record: Record) -> dict[str, Any]:
    """From the last process that recorded them: another one may have run elsewhere."""
    for attempt in reversed(record.attempts):
        if "data" in attempt.findings:
            facts: dict[str, Any] = attempt.findings["data"]
            return facts
    return {}
