"""The shelf as a whole: which reader gets a file, and what any file may do to it."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from types import ModuleType

import pytest

from steptime import formats, plugins
from steptime.core.errors import SteptimeError
from steptime.formats import Original, Reading, Skipped
from steptime.formats._writer import has_accelerators

pytestmark = pytest.mark.slow

Read = Callable[..., Reading]
Make = Callable[..., Original]
TIMM = """model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count
resnet50,224,100,320,32,25
"""


def test_recognise_goes_by_content_not_by_name(make: Make) -> None:
    assert formats.recognise(make("anything.txt", TIMM)) == "timm"
    assert (
        formats.recognise(
            make("benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv", "nothing of the kind\n")
        )
        == ""
    )


def test_gzip_file_is_read_and_kept_compressed(make: Make) -> None:
    packed = gzip.compress(TIMM.encode())
    file = make("a.csv.gz", packed)
    found = formats.read(file)
    assert len(found.runs) == 1 and found.runs[0].original == file.sha256 and file.data == packed


def test_torn_gzip_file_is_not_recognised(make: Make) -> None:
    assert formats.recognise(make("a.csv.gz", gzip.compress(TIMM.encode())[:30])) == ""


def test_byte_order_marks_are_dropped(make: Make) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        assert make("a", "epoch".encode(encoding)).text == "epoch"


def test_undecodable_bytes_become_replacement_characters(make: Make) -> None:
    assert make("a", b"caf\xe9").text == "caf\ufffd"


def test_repeated_location_gets_a_number(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ModuleType("reader")
    reader.read = lambda file: (file.run("line 1", {}, {"score": score}) for score in (1.0, 2.0))
    monkeypatch.setattr(formats, "load_format", lambda name: reader)
    found = formats.read(Original("a", b"", source="any"))
    assert [run.location for run in found.runs] == ["line 1", "line 1 (2)"]
    assert len({run.id for run in found.runs}) == 2


def test_failing_reader_keeps_earlier_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(file: Original) -> formats.Rows:
        yield file.run("line 1", {}, {"score": 1.0})
        yield Skipped("line 2", "empty")
        raise ZeroDivisionError("oh")

    reader = ModuleType("reader")
    reader.read = read
    monkeypatch.setattr(formats, "load_format", lambda name: reader)
    found = formats.read(Original("a", b"", source="any"))
    assert len(found.runs) == len(found.skipped) == 1
    assert found.broken == "the reader any stopped: ZeroDivisionError: oh"


def test_run_holds_only_what_json_and_utf8_can() -> None:
    file = Original("a\udc80", b"")
    metrics = {"loss": float("nan"), "score": 2.0, "power": None}
    run = file.run(
        "p\ud800",
        {"model": "m" * 999, "device": "", "devices": 2},
        metrics,
        more={"x": [float("inf"), "\ud800"]},
    )
    assert run.metrics == {"score": 2.0} and run.dimensions == {"model": "m" * 300, "devices": 2}
    assert json.loads(json.dumps(run.to_dict(), allow_nan=False).encode()) and run.more == {
        "x": [None, "?"]
    }


def test_every_shared_file_has_exactly_one_reader(real_files: list[Original]) -> None:
    readers = {name: plugins.load("formats", name) for name in plugins.names("formats")}
    owners = {
        f.name: [n for n, reader in readers.items() if reader.recognises(f.name, f.head)]
        for f in real_files
    }
    assert {name: found for name, found in owners.items() if len(found) != 1} == {}


def test_damaged_real_files_never_stop_a_reader(
    readings: dict[str, Reading], real_files: list[Original]
) -> None:
    """Cut off anywhere, or with bytes changed; the smallest three files of each kind."""
    rng, seen = random.Random(4), dict[str, int]()
    for file in sorted(real_files, key=lambda file: len(file.data)):
        kind = readings[file.name].source
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] > 3 or len(file.data) > 400_000:
            continue
        for data in _damaged(file.data, rng):
            found = formats.read(
                Original(file.name, data, file.name, source=kind, beside=file.beside)
            )
            assert not found.broken, f"{file.name}: {found.broken}"


def _damaged(data: bytes, rng: random.Random) -> list[bytes]:
    cuts = [data[: rng.randrange(len(data))] for _ in range(6)]
    changed = bytearray(data)
    for _ in range(20):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return [*cuts, bytes(changed), data[rng.randrange(len(data)) :]]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("NVIDIA H200", True),
        ("NVIDIA A2 Tensor Core GPU", True),
        ("Xeon Phi 7250", True),
        ("NVIDIA GH200 Grace Hopper", True),
        ("", True),
        ("AMD EPYC", False),
        ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", False),
        ("Intel(R) Core(TM) i7-9700K", False),
        ("x86_64", False),
        ("aarch64", False),
        ("cpu", False),
    ],
)
def test_has_accelerators_by_the_name_of_an_imported_device(device: str, expected: bool) -> None:
    assert has_accelerators({"device": device}) is expected


def test_has_accelerators_by_the_hardware_of_a_result() -> None:
    hardware = {"accelerators": 0, "processor": None, "processors_per_node": None}
    assert not has_accelerators({"device": "h200", "hardware": hardware})


def test_original_that_unpacks_to_too_much_is_refused() -> None:
    bomb = Original("bomb.gz", gzip.compress(bytes(40 << 20)))
    with pytest.raises(SteptimeError, match="unpacks to more than 16 MiB"):
        _ = bomb.content
