"""Nothing acknowledged is lost, and nothing is there twice, whichever process is killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steptime.core.job import Job
from steptime.core.record import Attempt
from steptime.store.check import check
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("crashes.py")


def started(what: str, store: FolderStore, number: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-P", str(SCRIPT), what, str(store.path), str(number)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def measured(store: FolderStore) -> list[Attempt]:
    return [attempt for attempt in FolderStore(store.path).attempts() if attempt.measurement]


@pytest.fixture
def quick() -> Iterator[FolderStore]:
    """In memory where there is some: a kill does not care, and writers get more done before it."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        yield FolderStore(Path(folder) / "results")


def test_compact_survives_death_before_any_system_call(
    store: FolderStore, keep: Callable[[Job], Path], make_job: Callable[..., Job]
) -> None:
    for number in range(3):
        keep(make_job(process=number))
    before = store.attempts()
    with started("stop", store, 100) as process:
        assert process.wait(120) == 0
    copies = sorted(store.path.parent.glob(f"{store.path.name}.*"))
    assert len(copies) > 20
    for copy in map(FolderStore, copies):
        assert copy.attempts() == before and copy.problems == []
        compact(copy)
        report = check(copy)
        assert (
            report.attempts,
            report.wrong,
            report.duplicates,
            report.part_files["attempts"],
        ) == (
            3,
            [],
            0,
            3,
        )


@pytest.mark.live
def test_store_survives_hundreds_of_kills(quick: FolderStore) -> None:
    quick.make()
    with started("write", quick, 60) as writers, started("compact", quick, 60) as compactors:
        assert writers.wait(120) == 0 and compactors.wait(120) == 0
        assert compactors.stdout is not None and int(compactors.stdout.read()) > 30
    found, acknowledged = measured(quick), Path(f"{quick.path}.acks").read_text().split()
    assert set(acknowledged) <= {attempt.id for attempt in found}
    # More than one result for each kill; how many more depends on how busy the machine is.
    assert len(acknowledged) > 60
    compact(quick)
    assert measured(quick) == found
    report = check(quick)
    assert (report.wrong, report.duplicates, report.part_files["attempts"]) == ([], 0, len(found))
