"""What a chart shows, read from its Vega-Lite."""

from __future__ import annotations

from typing import Any

import pytest

from steptime.charts.channels import MOST_COLOURS, MOST_NAMES, MOST_SMALL_CHARTS
from steptime.charts.chart import make_spec
from steptime.charts.history import make_history_spec
from steptime.index.index import Point
from steptime.index.query import from_url

VALUES = {
    "framework": ["jax", "openvino", "pytorch"],
    "precision": ["fp32", "int8"],
    "model": ["m"],
}
POINTS = [
    Point(
        {"model": "m", "framework": framework, "precision": precision},
        10.0,
        9.0,
        12.0,
        1,
        "id",
        0.5,
    )
    for framework in VALUES["framework"]
    for precision in VALUES["precision"]
]


def drawn(query: str, points: list[Point] = POINTS) -> dict[str, Any]:
    return make_spec(from_url(query), points, VALUES.__getitem__)


def marks(query: str, channel: str, points: list[Point] = POINTS) -> dict[str, str]:
    scale = drawn(query, points)["layer"][-1]["encoding"][channel]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_every_point_has_both_ends_of_its_interval() -> None:
    assert [(v["low"], v["high"]) for v in drawn("x=task_loss", POINTS[:2])["data"]["values"]] == [
        (9.0, 12.0)
    ] * 2


def test_a_value_keeps_its_colour_whatever_is_shown_beside_it() -> None:
    assert (
        marks("by=framework", "color")["pytorch"]
        == marks("by=framework", "color", POINTS[-1:])["pytorch"]
    )


def test_numbers_have_the_colours_of_the_legend_that_spells_them_as_the_points_do() -> None:
    points = [
        Point({"model": "m", "replica_batch": size}, 1.0, None, None, 1, "id")
        for size in (50.0, 128.0)
    ]
    chart = make_spec(from_url("by=replica_batch&mark=bar"), points, lambda name: ["128.0", "50.0"])
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["50", "128"]
    assert [value["replica_batch"] for value in chart["data"]["values"]] == ["50", "128"]


def test_shown_values_have_different_colours_among_many_known_ones() -> None:
    known = [f"framework {number}" for number in range(40)]
    points = [Point({"model": "m", "framework": name}, 1.0, None, None, 1, "id") for name in known]
    for first in range(0, 40, 8):
        spec = make_spec(from_url("by=framework"), points[first : first + 8], lambda name: known)
        colours = spec["layer"][-1]["encoding"]["color"]["scale"]["range"]
        assert len(set(colours)) == 8


def test_values_of_one_chart_have_different_colours_and_shapes() -> None:
    colours, shapes = (marks("by=framework,precision", channel) for channel in ("color", "shape"))
    assert len(set(colours.values())) == 3 and len(set(shapes.values())) == 2


def test_more_than_two_dimensions_share_the_shape() -> None:
    values = drawn("by=framework,precision,model")["data"]["values"]
    assert values[0]["precision model"] == "fp32 m"


def test_units_have_their_name_where_all_points_share_it() -> None:
    chart = make_spec(from_url("by=framework"), POINTS, lambda name: [], "target_tokens")
    titles = {layer["encoding"]["y"]["title"] for layer in chart["layer"]}
    assert titles == {"Throughput, target tokens/s (best)"}


def test_a_log_axis_is_asked_for_by_its_letter() -> None:
    axes = drawn("x=task_loss&log=y")["layer"][-1]["encoding"]
    assert (axes["y"]["scale"], axes["x"]["scale"]) == ({"type": "log"}, {"zero": False})


def test_split_draws_small_charts() -> None:
    assert drawn("split=model")["facet"]["field"] == "model"


def test_the_title_says_what_is_fixed() -> None:
    title = drawn("x=task_loss&phase=inference&!model=b")["title"]
    assert title == {
        "text": "Throughput against Accuracy loss",
        "subtitle": "inference, not b",
    }


def test_the_axis_says_how_runs_were_joined() -> None:
    assert (
        drawn("agg=median")["layer"][-1]["encoding"]["y"]["title"] == "Throughput, units/s (median)"
    )


def test_the_legend_names_only_what_is_there() -> None:
    assert list(marks("by=framework", "color", POINTS[-1:])) == ["pytorch"]


def test_an_axis_shows_no_more_names_than_can_be_read() -> None:
    points = [
        Point({"model": f"m{number}"}, 1.0, None, None, number, "id") for number in range(100)
    ]
    shown = [value["x"] for value in drawn("", points)["data"]["values"]]
    assert len(shown) == MOST_NAMES and "m99" in shown and "m0" not in shown


def test_without_intervals_there_are_no_lines_for_them() -> None:
    assert len(drawn("", [Point({"model": "m"}, 1.0, None, None, 1, "id")])["layer"]) == 1


def test_bars_stand_on_zero_side_by_side_under_their_intervals() -> None:
    bars, interval = drawn("mark=bar&by=framework,precision")["layer"]
    assert bars["mark"] == "bar" and bars["encoding"]["y"]["scale"] == {"zero": True}
    assert (
        bars["encoding"]["xOffset"]["field"]
        == interval["encoding"]["xOffset"]["field"]
        == "framework precision"
    )
    assert "shape" not in bars["encoding"] and interval["mark"]["type"] == "rule"


def test_numbers_below_bars_are_names() -> None:
    points = [Point({"devices": count}, 1.0, None, None, 1, "id") for count in (1.0, 2.0)]
    assert drawn("mark=bar&x=devices", points)["layer"][0]["encoding"]["x"]["type"] == "ordinal"


@pytest.mark.parametrize("query", ["mark=bar&log=y", "mark=bar&x=task_loss"])
def test_a_bar_without_a_base_is_drawn_as_a_point(query: str) -> None:
    assert drawn(query)["layer"][-1]["mark"]["type"] == "point"


def test_lines_join_points_of_one_colour_and_shape() -> None:
    line, *_, points = drawn("mark=line&by=framework,precision")["layer"]
    assert (line["mark"]["type"], points["mark"]["type"]) == ("line", "point")
    assert line["encoding"]["detail"]["field"] == "precision"


def test_the_axis_says_what_a_deviation_is() -> None:
    title = drawn("agg=mean&err=deviation")["layer"][-1]["encoding"]["y"]["title"]
    assert title == "Throughput, units/s (mean ± standard deviation)"


def test_a_change_of_level_is_drawn_as_a_dashed_line() -> None:
    rows = [{"id": "a", "started": "2026-01-01", "throughput": 1.0}]
    query = from_url("")
    assert [len(make_history_spec(query, rows, changed)["layer"]) for changed in ((), ("a",))] == [
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("query", "most"), [("split=server", MOST_SMALL_CHARTS), ("by=server", MOST_COLOURS)]
)
def test_small_charts_and_legends_hold_no_more_names_than_can_be_read(
    query: str, most: int
) -> None:
    points = [
        Point({"model": "m", "server": f"s{number}"}, 1.0, None, None, number, "id")
        for number in range(100)
    ]
    shown = make_spec(
        from_url(query), points, lambda name: [f"s{number}" for number in range(100)]
    )["data"]["values"]
    assert len(shown) == most and "s99" in {value["server"] for value in shown}


def test_the_axis_says_what_values_are_relative_to() -> None:
    points = [Point({"devices": 2.0}, 1.0, None, None, 1, "id")]
    title = drawn("y=efficiency", points)["layer"][-1]["encoding"]["y"]["title"]
    assert title == "Throughput per processing unit, relative to the fewest"
