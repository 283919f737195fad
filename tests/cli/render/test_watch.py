"""Progress: one line on a terminal, at most one line per minute in a log."""

from __future__ import annotations

import io
import sys

import pytest

from factories import make_attempt, make_failed_attempt
from steptime.cli.render.watch import SessionWatch
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.protocol import preset


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def job() -> Job:
    case = Case(workload="lenet5")
    return Job(id="1", session="2", plan="3", process=0, case=case, protocol=preset("quick"))


def test_watch_shows_process_and_time_left_on_a_terminal(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with SessionWatch() as watch:
        watch.on_start(job, 0, 3)
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert (
        drawn[1].startswith("process 1 of 3 or more, ") and " s left: lenet5 training" in drawn[1]
    )
    assert drawn[-1] == ""


def test_time_left_follows_from_finished_processes(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    now = iter([0.0, 0.0, 0.0, 10.0, 10.0])
    attempt = make_attempt([1] * 40, findings={"seconds": {"import": 2.0}})
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    watch = SessionWatch()
    watch.on_start(job, 0, 3)
    watch.on_finish(attempt)
    watch.on_start(job, 1, 3)
    assert "process 2 of 3 or more, 20 s left" in terminal.getvalue()


def test_watch_logs_at_most_one_line_per_minute(
    job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    monkeypatch.setattr("time.monotonic", lambda: seconds)
    with SessionWatch() as watch:
        for done, seconds in enumerate([30.0, 61.0, 100.0, 122.0]):  # noqa: B007
            watch.on_start(job, done, 9)
    logged = capsys.readouterr().err.splitlines()
    assert [line.partition(" of ")[0] for line in logged] == ["process 2", "process 4"]


def test_watch_is_silent_in_a_short_session(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionWatch() as watch:
        watch.on_start(job, 0, 3)
    assert capsys.readouterr() == ("", "")


def test_watch_adds_up_the_stages_of_all_processes() -> None:
    watch = SessionWatch()
    for seconds in (2.0, 3.0):
        watch.on_finish(make_attempt([1] * 40, findings={"seconds": {"import": seconds}}))
    watch.on_finish(make_failed_attempt(Cause.CRASHED))
    assert watch.stage_seconds == {"import": 5.0}
