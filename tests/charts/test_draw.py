"""Pictures of charts, whatever text is in them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steptime.charts.chart import make_spec
from steptime.charts.draw import CONVERTER, clean_text, draw
from steptime.core.errors import SteptimeError
from steptime.index.index import Point
from steptime.index.query import from_url


@pytest.mark.parametrize(
    "text", ["\0", "\x1b[31m", "\ud800", "\uffff", "</svg><script>", "😀", "]]>"]
)
def test_draw_survives_odd_characters(text: str) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install '.[guide]'")
    points = [Point({"model": text}, 1.0, None, None, 1, "id")]
    picture = draw(".svg", make_spec(from_url(""), points, lambda name: [text]))
    assert picture.startswith(b"<svg") and b"<script" not in picture


def test_clean_text_keeps_what_xml_allows() -> None:
    assert (
        clean_text({"a": ["é\n", 1, None]}) == {"a": ["é\n", 1, None]}
        and clean_text("a\0b") == "a�b"
    )


CHART = {
    "data": {"values": [{"a": 1}]},
    "mark": "point",
    "encoding": {"x": {"field": "a", "type": "quantitative"}},
}
LIMITED = """
import resource, sys
from steptime.charts.draw import draw
from steptime.core.errors import SteptimeError
chart = {"data": {"values": []}, "mark": "point"}
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
for _ in range(2):
    try:
        draw(".svg", chart)
    except SteptimeError as problem:
        print(problem)
print(len(draw(".json", chart)) > 10)
"""


def test_draw_says_that_address_space_is_short() -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install '.[guide]'")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True
    )
    *refused, last = done.stdout.splitlines()
    assert len(refused) == 2 and last == "True"
    assert all("ended by SIGTRAP" in line and "ulimit -v" in line for line in refused)


def test_draw_goes_on_after_the_converter_was_killed() -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install '.[guide]'")
    assert draw(".svg", CHART).startswith(b"<svg")
    process = CONVERTER._process
    assert process is not None
    process.kill()
    process.wait()
    with pytest.raises(SteptimeError, match="vl-convert was ended by SIGKILL"):
        draw(".svg", CHART)
    assert draw(".png", CHART).startswith(b"\x89PNG")


def test_draw_explains_a_wrong_chart() -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install '.[guide]'")
    with pytest.raises(SteptimeError, match="The chart cannot be drawn: "):
        draw(".svg", {"mark": "nonsense"})
