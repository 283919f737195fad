"""What a chart shows, read from its Vega-Lite."""

from __future__ import annotations

from typing import Any

from steptime.guide.chart import spec
from steptime.guide.query import from_url


def row(framework: str, precision: str, loss: float = 0.0) -> dict[str, Any]:
    speed = {"throughput": 10.0, "throughput_low": 9.0, "throughput_high": 12.0}
    return {"id": "1", "model": "m", "framework": framework, "precision": precision, "task_loss": loss, **speed}


ROWS = [row(framework, precision) for framework in ("pytorch", "jax", "openvino") for precision in ("fp32", "int8")]


def marks(query: str, rows: list[dict[str, Any]], channel: str) -> dict[str, str]:
    drawn = spec(from_url(query), rows, ROWS)
    scale = drawn["layer"][-1]["encoding"][channel]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_every_row_is_a_point_with_both_ends_of_its_interval() -> None:
    values = spec(from_url("x=task_loss"), ROWS[:2], ROWS)["data"]["values"]
    assert [(value["throughput_low"], value["throughput_high"]) for value in values] == [(9.0, 12.0)] * 2


def test_a_value_keeps_its_colour_whatever_is_shown_beside_it() -> None:
    everything, one = (marks("x=task_loss&by=framework", rows, "color") for rows in (ROWS, ROWS[:1]))
    assert everything["pytorch"] == one["pytorch"]


def test_values_of_one_chart_have_different_colours_and_shapes() -> None:
    colours = marks("x=task_loss&by=framework,precision", ROWS, "color")
    shapes = marks("x=task_loss&by=framework,precision", ROWS, "shape")
    assert len(set(colours.values())) == 3 and len(set(shapes.values())) == 2


def test_a_log_axis_is_asked_for_by_its_letter() -> None:
    axes = spec(from_url("x=task_loss&log=y"), ROWS, ROWS)["layer"][-1]["encoding"]
    assert (axes["y"]["scale"], axes["x"]["scale"]) == ({"type": "log"}, {"zero": False})


def test_split_draws_small_charts() -> None:
    drawn = spec(from_url("x=task_loss&split=model"), ROWS, ROWS)
    assert drawn["facet"]["field"] == "model" and drawn["data"]["values"][0]["model"] == "m"


def test_the_title_says_what_is_fixed() -> None:
    title = spec(from_url("x=task_loss&phase=inference&!model=b"), ROWS, ROWS)["title"]
    assert title == {"text": "Throughput against Loss of the task metric", "subtitle": "inference, not b"}
