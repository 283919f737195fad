from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steptime.core.cause import Cause
from steptime.core.errors import NotInstalled
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement
from steptime.core.record import Failure
from steptime.store import parts
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["\0", "'\"\\", "{}\n", "Größe"]
)
NUMBERS = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.none() | st.booleans()
THINGS = st.dictionaries(TEXTS, TEXTS | NUMBERS | st.lists(NUMBERS, max_size=3), max_size=4)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    deltas = draw(st.lists(st.integers(0, 2**50), min_size=1, max_size=20))
    first = draw(st.integers(0, 2**61))
    device = draw(
        st.none() | st.lists(st.integers(0, 2**62), min_size=len(deltas), max_size=len(deltas))
    )
    counts = dict.fromkeys(
        ("host_ns", "dispatch_ns", "cpu_ns", "faults", "major_faults", "switches"), 2**60
    )
    block = Block(
        samples=len(deltas), involuntary_switches=0, pressure=draw(st.floats(0, 1)), **counts
    )
    stamps = [first + sum(deltas[:i]) for i in range(len(deltas) + 1)]
    clock, starts = {"drift": draw(st.floats(-1e9, 1e9))}, {"import": draw(st.floats(0, 1e9))}
    settings = {
        "group": 1,
        "cut": 0,
        "steady": True,
        "clock": clock,
        "starts": starts,
        "facts": draw(THINGS),
    }
    return Measurement(stamps=stamps, device_ns=device, blocks=(block,), **settings)


def write(store: FolderStore, job: Job, outcome: Measurement | Failure | dict[str, Any]) -> None:
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_context(machine={"fingerprint": "m"}, software={}, network={})
        if isinstance(outcome, Measurement):
            journal.write_measurement(outcome)
        elif isinstance(outcome, Failure):
            journal.write_failure(outcome)
        else:
            journal.write_findings(outcome)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    outcomes=st.lists(
        measurements() | THINGS | st.builds(Failure, cause=st.sampled_from(Cause), reason=TEXTS),
        max_size=4,
    )
)
def test_compacted_store_reads_exactly_as_before(
    outcomes: list[Any], tmp_path: Path, make_job: Callable[..., Job]
) -> None:
    store = FolderStore(tmp_path / uuid7())
    for number, outcome in enumerate(outcomes):
        write(store, make_job(process=number, task="measure" if number % 2 else "certify"), outcome)
    before = [store.attempts("measure"), store.attempts("certify")]
    store.make()
    assert compact(store).moved == len(outcomes)
    fresh = FolderStore(store.path)
    after = [fresh.attempts("measure"), fresh.attempts("certify")]
    assert after == before and repr(after) == repr(before)  # repr: 1 and 1.0 are equal, too
    assert fresh.problems == [] and list(store.path.rglob("*.jsonl")) == []


def test_nan_survives_compaction(store: FolderStore, make_job: Callable[..., Job]) -> None:
    write(store, make_job(), {"loss": float("nan"), "best": float("inf")})
    before = repr(store.attempts())
    compact(store)
    assert repr(FolderStore(store.path).attempts()) == before


def test_find_searches_parts_and_journals(
    store: FolderStore, keep: Callable[[Job], Path], make_job: Callable[..., Job]
) -> None:
    keep(make_job(process=0))
    compact(store)
    keep(make_job(process=1))
    (record,) = store.records()
    assert [attempt.process for attempt in record.attempts] == [0, 1]
    assert store.find(record.attempts[0].id) == [record]


def test_id_in_a_part_and_a_journal_is_one_attempt(
    store: FolderStore, keep: Callable[[Job], Path], make_job: Any
) -> None:
    path = keep(make_job())
    text = path.read_text()
    compact(store)
    path.write_text(text)
    assert len(store.attempts()) == 1


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[:-20],
    "no Parquet": lambda whole: b"x" * 1000,
    "a flipped bit": lambda whole: whole[:300] + bytes([whole[300] ^ 1]) + whole[301:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_part_is_reported_kept_and_skipped(
    damage: Callable[[bytes], bytes],
    store: FolderStore,
    keep: Callable[[Job], Path],
    make_job: Callable[..., Job],
) -> None:
    for session in ("s1", "s2"):
        keep(make_job(session=session))
        compact(store)
    victim = store.parts.paths()[0]
    victim.write_bytes(damaged := damage(victim.read_bytes()))
    fresh = FolderStore(store.path)
    assert len(fresh.attempts()) == 1
    assert (
        len(fresh.problems) == 1
        and str(victim) in fresh.problems[0]
        and "left as it is" in fresh.problems[0]
    )
    assert victim.read_bytes() == damaged


def test_part_of_a_newer_version_says_so(
    store: FolderStore,
    keep: Callable[[Job], Path],
    make_job: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep(make_job())
    compact(store)
    monkeypatch.setattr(parts, "PART_SCHEMA", "steptime-part/1")
    assert store.attempts() == [] and "use a newer steptime" in store.problems[0]


def test_part_of_an_older_version_says_how_to_convert_it(
    store: FolderStore,
    keep: Callable[[Job], Path],
    make_job: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep(make_job())
    compact(store)
    monkeypatch.setattr(parts, "PART_SCHEMA", "steptime-part/3")
    assert store.attempts() == [] and "steptime store convert OLD NEW" in store.problems[0]


def test_part_has_columns_for_queries(
    store: FolderStore, keep: Callable[[Job], Path], make_job: Callable[..., Job]
) -> None:
    import duckdb

    job = make_job()
    text = keep(job).read_text()
    compact(store)
    (path,) = store.parts.paths()
    question = "SELECT id, workload, status, case_key, batch_size, record FROM read_parquet(?)"
    row = duckdb.connect().execute(question, [str(path)]).fetchall()[0]
    assert row == (job.id, "mnist-mlp", "ok", job.case.key, 32, text)
    assert json.loads(row[-1].splitlines()[0])["id"] == job.id


def test_part_folder_may_have_any_name(tmp_path: Path, make_job: Callable[..., Job]) -> None:
    store = FolderStore(tmp_path / "it's [my] *best* results?")
    write(store, make_job(), {})
    compact(store)
    assert len(FolderStore(store.path).attempts()) == 1


def test_parts_without_duckdb_say_what_to_install(
    store: FolderStore,
    keep: Callable[[Job], Path],
    make_job: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep(make_job())
    compact(store)
    parts._connection.cache_clear()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(NotInstalled, match="pip install"):
        FolderStore(store.path).attempts()
