"""What every reader of a foreign format promises."""

from __future__ import annotations

import random
from typing import Any

import pytest

from steptime import plugins
from steptime.formats import Original
from steptime.formats._writer import read_back, writable_formats, write
from steptime.index.catalogue import METRICS

READERS = plugins.names("formats")
NOTHING = {
    "empty": b"",
    "zeros": bytes(3000),
    "prose": b"To be, or not to be: that is the question.\nWhether 'tis nobler\n" * 40,
    "python": b'"""A module."""\n\nimport os\n\n\ndef main() -> None:\n    print(os.sep)\n',
    "object": b'{"name": "a", "values": [1, 2, 3], "nested": {"deep": null}}',
    "table": b"name,age\nann,3\nbob,4\n",
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
}


def test_shared_files_are_no_formats() -> None:
    assert READERS and not [name for name in READERS if name.startswith("_")]


@pytest.mark.parametrize("name", READERS)
def test_format_has_title_recognises_and_read(name: str) -> None:
    reader = plugins.load("formats", name)
    assert isinstance(reader.TITLE, str) and reader.TITLE
    assert callable(reader.recognises) and callable(reader.read)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", NOTHING)
def test_format_does_not_recognise_other_files(name: str, kind: str) -> None:
    assert not plugins.load("formats", name).recognises("results/file", NOTHING[kind])


@pytest.mark.parametrize("name", READERS)
def test_reader_survives_any_bytes(name: str) -> None:
    reader, rng = plugins.load("formats", name), random.Random(name)
    for _ in range(40):
        data = rng.randbytes(rng.randrange(2000))
        reader.recognises("file", data)
        list(reader.read(Original("file", data, source=name)))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", NOTHING)
def test_reader_survives_files_of_other_formats(name: str, kind: str) -> None:
    list(plugins.load("formats", name).read(Original("file", NOTHING[kind], source=name)))


def made(number: int, **changes: Any) -> dict[str, Any]:
    """A row as the guide has them."""
    rng = random.Random(number)
    batch, speed = rng.choice([1, 32, 50]), rng.uniform(100, 9000)
    known = {
        "id": f"row-{number}",
        "started": f"2026-05-0{1 + number % 9}T10:11:12.345+00:00",
        "model": "resnet50",
        "phase": "training",
        "framework": "pytorch",
        "framework_version": "2.13.0",
        "software": "pytorch 2.13.0",
        "mode": "eager",
        "precision": "fp32",
        "device": "NVIDIA H100",
        "devices": 2.0,
        "nodes": 1.0,
        "replica_batch": float(batch),
        "effective_batch": 2.0 * batch,
        "data": "synthetic",
        "layout": "channels_last",
        "optimizer": "sgd",
        "unit": "images",
        "server": "node007",
        "source": "steptime",
        "status": "ok",
        "plausible": "yes",
        "session": "one",
        "grade": "A",
        "throughput": speed,
        "throughput_low": 0.98 * speed,
        "throughput_high": 1.01 * speed,
        "step_time": 2 * batch / speed,
        "mean_time": 2.02 * batch / speed,
        "mean_speed": speed / 1.01,
        "jitter": rng.random(),
        "speed_uncertainty": rng.random(),
        "cpu_time": None,
    }
    return {**known, **changes}


ROWS = [
    made(1),
    made(
        2,
        phase="inference",
        effective_batch=32.0,
        replica_batch=32.0,
        devices=1.0,
        accuracy=0.913,
        cost=0.01,
    ),
    made(
        3,
        model="deepmnist",
        framework="tensorflow",
        software="tensorflow 2.13.0",
        data="scratch",
        device="k80",
    ),
    made(4, model="gpt2", unit="tokens", effective_batch=8.0, replica_batch=4.0),
    made(
        5, data="CIFAR10", time_to_accuracy=341.25, accuracy=0.9412, cost=1.5, submitter="Some Lab"
    ),
    made(6, status="out_of_memory", failure="it asked for 81 GB")
    | dict.fromkeys(
        [name for name in made(6) if name.partition("_low")[0].partition("_high")[0] in METRICS]
    ),
    made(7, model='a, "b" <c>', server="ä/ü"),
]
WRITERS = ["csv", "dawnbench", "dlbs", "mlperf_training_log", "parquet", "psc", "pytorch_benchmark"]


def test_writable_formats_are_found() -> None:
    assert writable_formats() == WRITERS


@pytest.mark.parametrize("name", WRITERS)
def test_every_row_is_written_or_skipped_with_a_reason(name: str) -> None:
    found = write(name, ROWS)
    told = {identifier for page in found.pages for identifier in page.rows}
    assert told | {one.location for one in found.skipped} == {row["id"] for row in ROWS}
    assert all(one.reason for one in found.skipped) and found.written == len(told)


@pytest.mark.parametrize("name", WRITERS)
def test_written_file_is_recognised(name: str) -> None:
    reader = plugins.load("formats", name)
    assert all(
        reader.recognises(page.name, page.data) for page in write(name, ROWS).pages if page.rows
    )


@pytest.mark.parametrize("name", WRITERS)
def test_written_values_read_back_equal(name: str) -> None:
    """A format may lack a name for a value; it may change only what it assumes."""
    found = write(name, ROWS)
    assert set(found.changed) <= set(getattr(plugins.load("formats", name), "ASSUMED", ()))
    told = read_back(name, found.pages)
    measured = [row for row in ROWS if row["id"] in told and row["status"] == "ok"]
    assert measured and all(set(told[row["id"]]) & set(METRICS) for row in measured)


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_own_tables_hold_everything(name: str) -> None:
    found = write(name, ROWS)
    assert (found.skipped, found.absent, found.changed) == ((), {}, {})


@pytest.mark.parametrize("name", WRITERS)
def test_write_without_rows_makes_no_file(name: str) -> None:
    assert write(name, []).pages == ()
