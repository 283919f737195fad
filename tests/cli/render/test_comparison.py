"""How a ratio, its interval and its p-value are printed."""

from __future__ import annotations

import pytest

from steptime.analysis.compare import Verdict
from steptime.cli.render.comparison import ratio_text, show_p_value


def verdict(low: float, high: float, p: float, level: float = 0.95) -> Verdict:
    return Verdict("slower", 1.2, low, high, p=p, level=level)


@pytest.mark.parametrize(
    ("low", "text"),
    [(1.00004, "1.00004 … 1.441"), (0.99996, "0.99996 … 1.441"), (1.04, "1.040 … 1.441")],
)
def test_ratio_text_never_rounds_an_end_to_one(low: float, text: str) -> None:
    assert ratio_text(verdict(low, 1.441, 0.04)) == f"1.200 ({text}, 95 % interval)"


@pytest.mark.parametrize(
    ("p", "text"), [(0.05001, "p = 0.05001;"), (0.0499, "p = 0.0499;"), (0.0031, "p = 0.0031;")]
)
def test_show_p_value_never_rounds_it_to_the_limit(
    p: float, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_p_value(verdict(1.1, 1.3, p))
    assert f"{text} 0.05 or less is a difference" in capsys.readouterr().out


def test_show_p_value_of_a_live_comparison_tells_the_adjustment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_p_value(verdict(1.1, 1.3, 0.039, level=0.98))
    assert "p = 0.039, adjusted for repeated looks; 0.05 or less" in capsys.readouterr().out
