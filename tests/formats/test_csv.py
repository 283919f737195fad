"""Our own table, as a spreadsheet reads it."""

from __future__ import annotations

from steptime.formats import csv


def test_counts_are_written_as_integers() -> None:
    row = {
        "id": "a",
        "model": "m",
        "devices": 2.0,
        "replica_batch": 32.0,
        "throughput": 100.0,
        "threads": None,
    }
    (page,) = csv.write([row])
    head, line = page.data.decode().splitlines()
    found = dict(zip(head.split(","), line.split(","), strict=True))
    assert (found["devices [count]"], found["replica_batch [count]"]) == ("2", "32")
    assert found["throughput [units/s of all devices]"] == "100.0"
