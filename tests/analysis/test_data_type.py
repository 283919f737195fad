from __future__ import annotations

from typing import Any

import pytest

from factories import make_record
from steptime.analysis.data_type import data_type, sentence, staging_sentence


def found(
    kind: str = "nvme", cache: str = "warm", asked: str = "warm", **told: Any
) -> dict[str, Any]:
    pages = {"requested": asked, "observed": cache}
    on = {"kind": kind, "file_system": "ext4", "device": "nvme0n1"}
    return {"data": {"on": on, "page_cache": pages, "bytes_per_step": 4096, "prefetch": 0, **told}}


@pytest.mark.parametrize(
    "kind, word",
    [
        ("dram", "real in DRAM"),
        ("ssd", "real on SSD"),
        ("network", "real in a network directory"),
        ("unknown", "real"),
    ],
)
def test_data_type_of_real_data_names_the_storage(kind: str, word: str) -> None:
    assert data_type(make_record(processes=1, data="real", findings=found(kind))) == word


def test_data_type_of_synthetic_data_names_the_memory() -> None:
    assert data_type(make_record(processes=1)) == "synthetic on device"
    assert data_type(make_record(processes=1, data="host")) == "synthetic in host memory"


def test_data_type_names_cold_cache_and_tier() -> None:
    record = make_record(
        processes=1,
        data="real",
        staging="scratch",
        page_cache="cold",
        findings=found("disk", "cold"),
    )
    assert data_type(record) == "real on disk, cold (scratch)"


def test_data_type_without_findings_is_real() -> None:
    assert (
        data_type(make_record(processes=1, data="real")) == "real"
        and sentence(make_record(processes=1)) == ""
    )


def test_sentence_reports_a_cache_state_other_than_requested() -> None:
    record = make_record(
        processes=1, data="real", findings=found("dram", "warm", "cold", prefetch=2)
    )
    wanted = (
        "real in DRAM [ext4, nvme0n1], 4 KiB a step, 2 kept ready by a thread; "
        "page cache warm, though cold was requested"
    )
    assert sentence(record) == wanted


def test_staging_sentence_reports_size_and_rate() -> None:
    told = {
        "bytes": 1 << 20,
        "bytes_per_second": 2.0 * (1 << 20),
        "tier": "local",
        "on": {"kind": "nvme"},
    }
    assert (
        staging_sentence(make_record(processes=1, findings={"staging": told}))
        == "1 MiB copied to local (nvme) at 2 MiB/s"
    )
    assert staging_sentence(make_record(processes=1)) == ""


def test_data_type_of_synthetic_data_with_a_tier_stays_synthetic() -> None:
    record = make_record(processes=1, staging="disk")
    assert data_type(record) == "synthetic on device (disk)"
