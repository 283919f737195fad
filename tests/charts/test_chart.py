"""What a chart shows, read from its Vega-Lite."""

from __future__ import annotations

from typing import Any

import pytest

from steptime.charts.chart import make_spec
from steptime.charts.colours import MOST_COLOURS, MOST_NAMES, MOST_SMALL_CHARTS
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


def test_make_spec_values_have_both_ends_of_the_interval() -> None:
    assert [(v["low"], v["high"]) for v in drawn("x=task_loss", POINTS[:2])["data"]["values"]] == [
        (9.0, 12.0)
    ] * 2


def test_make_spec_colours_do_not_depend_on_other_values() -> None:
    assert (
        marks("by=framework", "color")["pytorch"]
        == marks("by=framework", "color", POINTS[-1:])["pytorch"]
    )


def test_make_spec_legend_spells_numbers_as_the_points_do() -> None:
    points = [
        Point({"model": "m", "replica_batch": size}, 1.0, None, None, 1, "id")
        for size in (50.0, 128.0)
    ]
    chart = make_spec(from_url("by=replica_batch&mark=bar"), points, lambda name: ["128.0", "50.0"])
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["50", "128"]
    assert [value["replica_batch"] for value in chart["data"]["values"]] == ["50", "128"]


def test_make_spec_colours_differ_among_many_known_values() -> None:
    known = [f"framework {number}" for number in range(40)]
    points = [Point({"model": "m", "framework": name}, 1.0, None, None, 1, "id") for name in known]
    for first in range(0, 40, 8):
        spec = make_spec(from_url("by=framework"), points[first : first + 8], lambda name: known)
        colours = spec["layer"][-1]["encoding"]["color"]["scale"]["range"]
        assert len(set(colours)) == 8


def test_make_spec_values_have_different_colours_and_shapes() -> None:
    colours, shapes = (marks("by=framework,precision", channel) for channel in ("color", "shape"))
    assert len(set(colours.values())) == 3 and len(set(shapes.values())) == 2


def test_make_spec_joins_further_dimensions_in_the_shape() -> None:
    values = drawn("by=framework,precision,model")["data"]["values"]
    assert values[0]["precision model"] == "fp32 m"


def test_make_spec_axis_names_a_common_unit() -> None:
    chart = make_spec(from_url("by=framework"), POINTS, lambda name: [], "target_tokens")
    titles = {layer["encoding"]["y"]["title"] for layer in chart["layer"]}
    assert titles == {"Throughput, target tokens/s (best)"}


def test_make_spec_draws_the_log_axis_of_the_query() -> None:
    axes = drawn("x=task_loss&log=y")["layer"][-1]["encoding"]
    assert (axes["y"]["scale"], axes["x"]["scale"]) == ({"type": "log"}, {"zero": False})


def test_make_spec_with_split_draws_small_charts() -> None:
    assert drawn("split=model")["facet"]["field"] == "model"


def test_make_spec_title_names_the_filters() -> None:
    title = drawn("x=task_loss&phase=inference&!model=b")["title"]
    assert title == {
        "text": "Throughput against Accuracy loss",
        "subtitle": "inference, not b",
    }


def test_make_spec_axis_names_the_aggregate() -> None:
    assert (
        drawn("agg=median")["layer"][-1]["encoding"]["y"]["title"] == "Throughput, units/s (median)"
    )


def test_make_spec_legend_names_only_shown_values() -> None:
    assert list(marks("by=framework", "color", POINTS[-1:])) == ["pytorch"]


def test_make_spec_limits_the_names_of_an_axis() -> None:
    points = [
        Point({"model": f"m{number}"}, 1.0, None, None, number, "id") for number in range(100)
    ]
    shown = [value["x"] for value in drawn("", points)["data"]["values"]]
    assert len(shown) == MOST_NAMES and "m99" in shown and "m0" not in shown


def test_make_spec_has_no_interval_layer_without_intervals() -> None:
    assert len(drawn("", [Point({"model": "m"}, 1.0, None, None, 1, "id")])["layer"]) == 1


def test_make_spec_bars_start_at_zero_side_by_side_under_intervals() -> None:
    bars, interval = drawn("mark=bar&by=framework,precision")["layer"]
    assert bars["mark"] == "bar" and bars["encoding"]["y"]["scale"] == {"zero": True}
    assert (
        bars["encoding"]["xOffset"]["field"]
        == interval["encoding"]["xOffset"]["field"]
        == "framework precision"
    )
    assert "shape" not in bars["encoding"] and interval["mark"]["type"] == "rule"


def test_make_spec_numbers_below_bars_are_ordinal() -> None:
    points = [Point({"devices": count}, 1.0, None, None, 1, "id") for count in (1.0, 2.0)]
    assert drawn("mark=bar&x=devices", points)["layer"][0]["encoding"]["x"]["type"] == "ordinal"


@pytest.mark.parametrize("query", ["mark=bar&log=y", "mark=bar&x=task_loss"])
def test_make_spec_draws_points_if_bars_have_no_base(query: str) -> None:
    assert drawn(query)["layer"][-1]["mark"]["type"] == "point"


def test_make_spec_lines_join_points_of_one_colour_and_shape() -> None:
    line, *_, points = drawn("mark=line&by=framework,precision")["layer"]
    assert (line["mark"]["type"], points["mark"]["type"]) == ("line", "point")
    assert line["encoding"]["detail"]["field"] == "precision"


def test_make_spec_axis_names_the_standard_deviation() -> None:
    title = drawn("agg=mean&err=deviation")["layer"][-1]["encoding"]["y"]["title"]
    assert title == "Throughput, units/s (mean ± standard deviation)"


def test_make_history_spec_draws_changes_as_an_extra_layer() -> None:
    rows = [{"id": "a", "started": "2026-01-01", "throughput": 1.0}]
    query = from_url("")
    assert [len(make_history_spec(query, rows, changed)["layer"]) for changed in ((), ("a",))] == [
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("query", "most"), [("split=server", MOST_SMALL_CHARTS), ("by=server", MOST_COLOURS)]
)
def test_make_spec_limits_the_values_of_legends_and_small_charts(query: str, most: int) -> None:
    points = [
        Point({"model": "m", "server": f"s{number}"}, 1.0, None, None, number, "id")
        for number in range(100)
    ]
    shown = make_spec(
        from_url(query), points, lambda name: [f"s{number}" for number in range(100)]
    )["data"]["values"]
    assert len(shown) == most and "s99" in {value["server"] for value in shown}


def test_make_spec_axis_names_the_baseline() -> None:
    points = [Point({"devices": 2.0}, 1.0, None, None, 1, "id")]
    title = drawn("y=efficiency", points)["layer"][-1]["encoding"]["y"]["title"]
    assert title == "Throughput per processing unit, relative to the fewest"


def test_titles_keep_clear_of_labels_that_a_wider_font_makes_longer() -> None:
    name = "resnet50-with-a-long-name"
    points = [Point({"model": name}, 1.0, None, None, 1, "id")]
    encoding = make_spec(from_url(""), points, lambda _: [name])["layer"][0]["encoding"]
    assert encoding["x"]["axis"]["titlePadding"] >= len(name)
    assert encoding["y"]["axis"]["titlePadding"] >= len("1,000,000")
