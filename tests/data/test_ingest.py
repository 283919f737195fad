from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.ranks import Ranks
from steptime.data.ingest import unpack
from steptime.data.sets import Samples


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def samples() -> Samples:
    values = np.arange(70, dtype=np.uint8).reshape(10, 7)
    return Samples(
        values[:, ::-1], np.arange(10, dtype=np.uint8), lambda rows: rows / np.float32(2)
    )


def real(size: int = 3, **settings: Any) -> Case:
    return Case(workload="mnist-mlp", data="real", batch_size=size, **settings)


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_ingest_repeats_the_batches_of_the_dataset(samples: Samples, cache: str) -> None:
    with unpack(samples, real(page_cache=cache)) as ingest:
        batches = list(islice(ingest.batches(), 5))
    for number, batch in enumerate(batches):
        first = number % 3 * 3  # the tenth sample fills no batch
        expected = samples.batch(slice(first, first + 3))
        assert all(np.array_equal(batch[name], expected[name]) for name in expected)
        assert batch["target"].dtype == np.int64 and batch["input"].dtype == np.float32


def test_ingest_gives_each_rank_its_own_batches(samples: Samples) -> None:
    with unpack(samples, real(1), Ranks(1, 3)) as ingest:
        assert [int(batch["target"][0]) for batch in islice(ingest.batches(), 4)] == [1, 4, 7, 0]


def test_ingest_facts_say_what_was_read(samples: Samples, folder: Path) -> None:
    with unpack(samples, real(prefetch=2)) as ingest:
        list(islice(ingest.batches(), 4))
        facts = ingest.facts()
    assert (facts["samples"], facts["bytes"], facts["bytes_per_step"], facts["batches_read"]) == (
        10,
        80,
        24,
        4,
    )
    assert facts["page_cache"]["requested"] == "warm" and facts["page_cache"]["observed"] in (
        "warm",
        "unknown",
    )
    assert facts["on"]["kind"] and facts["prefetch"] == 2 and list(folder.iterdir()) == []


def test_ingest_facts_report_observed_cache_state(
    samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steptime.data.pages.drop", lambda *range: False)  # a system that refuses
    with unpack(samples, real(page_cache="cold")) as ingest:
        list(islice(ingest.batches(), 2))
        assert ingest.facts()["page_cache"] == {
            "requested": "cold", "observed": "warm", "resident_before": 1.0, "resident_after": 1.0,
        }  # fmt: skip


def test_ingest_refuses_batch_larger_than_dataset(samples: Samples) -> None:
    with (
        pytest.raises(SteptimeError, match="The batch size 11 exceeds the 10 samples"),
        unpack(samples, real(11)),
    ):
        pass


def test_ingest_reports_truncated_file(samples: Samples) -> None:
    with unpack(samples, real()) as ingest:
        os.truncate(ingest.values.descriptor, 5)
        with pytest.raises(SteptimeError, match="ended 16 bytes too early"):
            next(ingest.batches())


def test_unpack_suggests_tier_if_folder_is_read_only(
    samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPTIME_DATA", "/proc/self")
    with (
        pytest.raises(SteptimeError, match="Name a tier of the machine file with staging"),
        unpack(samples, real()),
    ):
        pass
