from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mutations import dump, edit, unseal
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.store.journal import Journal
from steptime.store.reader import NO_END, last_output, read

pytestmark = pytest.mark.slow


@pytest.fixture
def path(keep: Callable[[Job], Path], make_job: Callable[..., Job]) -> Path:
    return keep(make_job())


def test_journal_cut_anywhere_never_gives_a_wrong_measurement(
    path: Path, measurement: Measurement
) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        problems: list[str] = []
        attempt = read(path, problems)
        found = attempt.measurement if attempt else None
        assert found == (measurement if length >= len(whole) - 1 else None)
        assert problems == []  # a torn end is what every killed writer leaves


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_journal_damaged_anywhere_reads_without_error(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = data.draw(st.integers(start, len(whole)))
    damaged = path.with_name("damaged.jsonl")
    damaged.write_bytes(whole[:start] + data.draw(st.binary(max_size=8)) + whole[stop:])
    read(damaged, [])


@pytest.mark.parametrize("lost", [2, 3])
def test_lost_sample_line_costs_the_measurement(lost: int, path: Path) -> None:
    unseal(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:lost] + lines[lost + 1 :]))
    problems: list[str] = []
    attempt = read(path, problems)
    assert attempt is not None and attempt.measurement is None
    assert attempt.failure is not None and attempt.failure.cause == "crashed"
    assert "samples are missing" in problems[0]


def test_many_damaged_lines_are_one_problem_with_their_count(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{torn\n" * 1000, *lines[1:]]))
    problems: list[str] = []
    assert read(path, problems) is not None
    assert problems == [f"{path}: skipped damaged line 2 and 999 more."]


def test_one_damaged_line_is_named(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{torn\n", *lines[1:]]))
    problems: list[str] = []
    read(path, problems)
    assert problems == [f"{path}: skipped damaged line 2."]


def test_journal_without_end_is_a_crash_with_its_output(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    path.with_suffix(".log").write_text("Segmentation fault\n")
    attempt = read(path)
    assert attempt is not None and attempt.failure is not None
    assert (attempt.failure.cause, attempt.failure.reason) == ("crashed", NO_END)
    assert attempt.failure.output == "Segmentation fault"
    assert attempt.machine == {"cpu": "x"}


def test_newer_schema_is_a_problem_that_names_the_file(path: Path) -> None:
    path.write_text(path.read_text().replace("steptime/2", "steptime/3"))
    problems: list[str] = []
    assert read(path, problems) is None
    assert str(path) in problems[0] and "newer steptime" in problems[0]


def test_older_schema_is_a_problem_that_says_how_to_convert(path: Path) -> None:
    path.write_text(path.read_text().replace("steptime/2", "steptime/1"))
    problems: list[str] = []
    assert read(path, problems) is None
    assert "steptime store convert OLD NEW" in problems[0]


def test_fields_of_a_later_version_are_skipped(path: Path, measurement: Measurement) -> None:
    lines = [json.loads(line) | {"later": 1} for line in path.read_text().splitlines()]
    lines[-1]["measurement"]["later"] = 1
    for line in lines:
        del line["checksum"]
    path.write_bytes(dump(lines))
    attempt = read(path)
    assert attempt is not None and attempt.measurement == measurement


def test_empty_journal_is_no_attempt_yet(tmp_path: Path) -> None:
    with Journal(tmp_path / "a.jsonl"):
        pass
    assert read(tmp_path / "a.jsonl") is None


def test_last_output_is_the_end_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))
    assert last_output(log).splitlines() == [f"line {number}" for number in range(99_960, 100_000)]


def test_low_precision_without_accuracy_loss_reads_as_a_failure(path: Path) -> None:
    edit(path, '"precision":"fp32"', '"precision":"int8"')
    attempt = read(path)
    assert attempt is not None and attempt.measurement is None and attempt.failure is not None
    assert (attempt.failure.cause, "int8 needs its accuracy part" in attempt.failure.reason) == (
        "crashed",
        True,
    )


def test_deeply_nested_line_is_skipped_and_named(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    nested = '{"line":"x","value":' + "[" * 100_000 + "]" * 100_000 + "}\n"
    path.write_text("".join([lines[0], nested, *lines[1:]]))
    problems: list[str] = []
    assert read(path, problems) is not None
    assert problems == [f"{path}: skipped damaged line 2."]


def test_line_that_is_no_object_is_skipped_and_named(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "[]\n", *lines[1:]]))
    problems: list[str] = []
    assert read(path, problems) is not None
    assert problems == [f"{path}: skipped damaged line 2."]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"session":"s1"', '"session":[]', "line 1: begin.session must be text, found []"),
        ('"fingerprint":"f"', '"fingerprint":7', "line 2: context.network.fingerprint must be"),
        ('"deltas":[10', '"deltas":["x"', "line 3: sample.deltas[0] must be a whole number"),
        ('"deltas":[10', '"deltas":[1e999', "line 3: sample.deltas[0] must be a whole number"),
        ('"steady":true', '"steady":2', "line 5: end.measurement.steady must be true or false"),
        ('"batch_size":32', '"batch_size":3000000000', "line 1: begin.case.batch_size must be"),
        ('"nodes":1', '"nodes":3', "2 devices cannot be spread evenly over 3 nodes"),
    ],
)
def test_record_outside_the_schema_is_set_aside_by_name(
    path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in path.read_text()
    edit(path, old, new)
    problems: list[str] = []
    assert read(path, problems) is None
    assert problems[0].startswith(f"{path}: set aside ({sentence}")


def test_sum_of_samples_beyond_64_bits_is_set_aside(path: Path) -> None:
    edit(path, '"deltas":[10,15,6]', f'"deltas":[{2**62},{2**62},{2**62}]')
    problems: list[str] = []
    assert read(path, problems) is None and "set aside" in problems[0]


def test_samples_of_a_journal_without_end_are_kept_apart(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))
    attempt = read(path)
    assert attempt is not None and attempt.measurement is None and attempt.unused_samples
    samples = json.loads(lines[2])
    assert list(attempt.unused_samples.host_ns) == samples["deltas"] != []
    assert (attempt.unused_samples.group, attempt.unused_samples.cut) == (None, None)


def test_samples_with_a_gap_are_not_kept(path: Path) -> None:
    unseal(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    attempt = read(path)
    assert attempt is not None and attempt.failure and attempt.unused_samples is None
