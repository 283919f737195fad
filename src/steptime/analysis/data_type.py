"""Where a record's batches came from, in the words that people choose by."""

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
    """By what the files were found on, not by the tier's name, which stands behind it to tell two of a kind apart."""
    case, found = record.case, _found(record)
    if case.data != "real":
        return SYNTHETIC[case.data]
    word = REAL.get(found.get("on", {}).get("kind", ""), "real")
    cold = ", cold" if _cache(found).get("found") == "cold" else ""
    return f"{word}{cold} ({case.staging})" if case.staging else f"{word}{cold}"


def sentence(record: Record) -> str:
    """For a single result; empty: nothing was read."""
    found = _found(record)
    if not found:
        return ""
    place, cache = found["on"], _cache(found)
    where = ", ".join(str(place[name]) for name in ("file_system", "device") if name in place)
    refused = "" if cache["found"] == cache["asked"] else f", though {cache['asked']} was asked for"
    ahead = f", {found['prefetch']} kept ready by a thread" if found["prefetch"] else ""
    size = byte_count(found["bytes_per_step"])
    return (
        f"{data_type(record)} [{where}], {size} a step{ahead}; page cache {cache['found']}{refused}"
    )


def staging(record: Record) -> str:
    told = record.last.findings.get("staging") or {}
    if "bytes_per_second" not in told:
        return ""
    rate, kind = byte_count(int(told["bytes_per_second"])), told["on"]["kind"]
    return f"{byte_count(told['bytes'])} copied to {told['tier']} ({kind}) at {rate}/s"


def _found(record: Record) -> dict[str, Any]:
    """By the last process that tells: another one may have been placed elsewhere."""
    told = [attempt.findings["data"] for attempt in record.attempts if "data" in attempt.findings]
    found: dict[str, Any] = told[-1] if told else {}
    return found


def _cache(found: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = found.get("page_cache", {})
    return told
