"""Pictures of charts, whatever text is in them."""

from __future__ import annotations

import pytest

from steptime.charts.chart import make_spec
from steptime.charts.draw import clean_text, draw
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
