"""Certificates as a table and as Markdown."""

from __future__ import annotations

import pytest

from command_line import Snapshot, Terminal
from factories import make_attempt
from steptime.cli.render import certificates
from steptime.core.cause import Cause
from steptime.core.record import Failure
from steptime.run.certify import Outcome


def make_item(name: str, share: float | None, *, weak: bool = False) -> dict[str, object]:
    passed = share is not None and share <= 1
    item = {"item": name, "share": share, "error": share, "bound": 1.0, "where": "dense1"}
    return {**item, "weak": weak, "passed": passed}


SEMANTICS = {"certificate": "id-of-fp64", "passed": True, "proves": ["gradients"]}


def make_outcome(
    mode: str,
    items: list[dict[str, object]],
    covers: str = "training",
    semantics: dict[str, object] | None = None,
) -> Outcome:
    facts = {
        "version": "2.1.0+cpu",
        "covers": covers,
        "semantics": semantics or {},
        "items": items,
    }
    attempt = make_attempt(
        [10**6] * 40, task="certify", findings={"certificate": facts}, id=f"id-{mode}", mode=mode
    )
    return Outcome(attempt.case, attempt)


@pytest.fixture
def outcomes() -> list[Outcome]:
    passing = [make_item("outputs", 0.25), make_item("gradients", 0.5, weak=True)]
    failing = [make_item("outputs", 0.125), make_item("optimizer step", None)]
    failure = Failure(cause=Cause.UNSUPPORTED, reason="mode graph: not in this framework")
    refused = make_attempt([10**6] * 40, mode="graph", measurement=None, failure=failure)
    return [
        make_outcome("eager", passing, semantics=SEMANTICS),
        make_outcome("compiled", failing),
        make_outcome("cudagraph", passing),
        make_outcome("xla", passing[:1], covers="inference"),
        Outcome(refused.case, refused),
    ]


@pytest.mark.parametrize("columns", [80, 120])
def test_table_of_certificates(
    columns: int,
    outcomes: list[Outcome],
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    certificates.show(outcomes)
    snapshot(f"certify-{columns}", terminal.getvalue())


def test_headline_of_one_certificate(
    outcomes: list[Outcome], capsys: pytest.CaptureFixture[str]
) -> None:
    certificates.show(outcomes[:1])
    headline = "pytorch 2.1.0 eager fp32 computes mnist-mlp: 1 of 2 items are proved, "
    assert capsys.readouterr().out.startswith(headline)


def test_markdown_of_certificates(
    outcomes: list[Outcome], snapshot: Snapshot, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates.show_markdown(outcomes)
    snapshot("certify-markdown", capsys.readouterr().out)


def test_document_has_the_certificate_or_the_failure(outcomes: list[Outcome]) -> None:
    passed = certificates.to_document(outcomes[0])
    failed = certificates.to_document(outcomes[-1])
    assert passed["certificate"]["passed"] and passed["failure"] is None
    assert failed["certificate"] is None and failed["failure"]["cause"] == "unsupported"
