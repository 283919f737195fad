from __future__ import annotations

from steptime.cli.render.time_spent import describe, to_document


def test_time_spent_names_the_longest_stage_first() -> None:
    stages = {"import": 3.0, "steps": 12.0, "rendezvous": 0.001}
    assert describe(20.0, stages) == "Took 20 s: steps 12, import 3, other 5."


def test_time_spent_gives_the_rest_to_other() -> None:
    document = to_document(20.0, {"import": 3.0})
    assert document == {"total": 20.0, "stages": {"import": 3.0, "other": 17.0}}


def test_time_spent_of_stages_that_overlap_the_total_is_not_negative() -> None:
    assert to_document(2.0, {"import": 3.0})["stages"]["other"] == 0.0
