"""Computations in plans: Python's meaning, and nothing that Python could do beside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.core.errors import SteptimeError
from steptime.plan.expression import LONGEST, check, evaluate

NAMES: dict[str, Any] = {
    "size": 8,
    "kind": "small",
    "sizes": [1, 2, 4],
    "images": {"small": "a", "large": "b"},
}


def value(text: str) -> Any:
    return evaluate(text, NAMES.__getitem__, {"env": lambda name, default="": default}, "line 7: ")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("size * 2 + 1", 17),
        ("7 // 2 - -size", 11),
        ("7 / 2", 3.5),
        ("2 ** 10 % 1000", 24),
        ("max(1, size // 16)", 1),
        ("'nhwc' if size > 4 and kind == 'small' else 'nchw'", "nhwc"),
        ("1 < size <= 8", True),
        ("not (size in sizes) or kind in ['large']", True),
        ("len(split('0,1,2', ','))", 3),
        ("upper(kind) + str(size)", "SMALL8"),
        ("replace(lower('ResNet'), 'net', '-net')", "res-net"),
        ("images[kind] + '!'", "a!"),
        ("sizes[2] + sum(sizes)", 11),
        ("sizes + [8]", [1, 2, 4, 8]),
        ("env('NOWHERE', 'x')", "x"),
    ],
)
def test_evaluate_agrees_with_python(written: str, meant: object) -> None:
    assert value(written) == meant and type(value(written)) is type(meant)


REFUSED = """
__import__('os') | kind.__class__ | ().__class__.__bases__ | open('/etc/passwd') | lambda: 1
[x for x in sizes] | f'{size}' | {'a': 1} | sizes[0:2] | size := 3 | 1 if | print(1) | exec('1')
(yield) | b'1' | None | 1j
... | *sizes | max(*sizes) | int(x=1) | size is 8 | size & 1 | a.b | '%s' % size
"""


@pytest.mark.parametrize("written", ["", *REFUSED.strip().replace("\n", " | ").split(" | ")])
def test_evaluate_refuses_other_python_with_its_line(written: str) -> None:
    with pytest.raises(SteptimeError, match=r"^line 7: "):
        value(written)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("size / 0", "line 7: ${size / 0}: 8 / 0 divides by zero."),
        ("size + kind", "line 7: ${size + kind}: + cannot be used with 8 and 'small'."),
        ("size < kind", "line 7: ${size < kind}: < cannot be used with 8 and 'small'."),
        ("sizes[9]", "line 7: ${sizes[9]}: [] cannot be used with [1, 2, 4] and 9."),
        ("images['lage']", "line 7: No entry of images 'lage'. Did you mean 'large'?"),
        ("mn(1, 2)", "line 7: No function 'mn'. Did you mean 'min'?"),
        ("min(1, kind)", "line 7: ${min(1, kind)}: min(1, kind) fails: "),
        ("int(kind)", "line 7: ${int(kind)}: int(kind) fails: invalid literal"),
        ("-kind", "line 7: ${-kind}: -kind needs a number, found 'small'."),
    ],
)
def test_evaluate_explains_what_fails(written: str, message: str) -> None:
    with pytest.raises(SteptimeError) as refused:
        value(written)
    assert str(refused.value).startswith(message)


DEEP = ["-" * 900 + "1", "(" * 300 + "1" + ")" * 300, "1 + " * 900 + "1", "a" + ".b" * 400]


@pytest.mark.parametrize(
    "written", ["9 ** 9 ** 9", "(10 ** 99) ** 99", "'x' * 10 ** 9", "1e308 * 10 ** 400", *DEEP]
)
def test_evaluate_refuses_what_takes_long_or_much_memory(written: str) -> None:
    with pytest.raises(SteptimeError):
        value(written)


def test_check_finds_names_without_computing() -> None:
    assert sorted(check("max(size, 2) if kind else images[other]", ())) == [
        "images",
        "kind",
        "other",
        "size",
    ]


numbers = st.integers(-50, 50).map(str) | st.just("size")
operators = st.sampled_from(["+", "-", "*", "//", "%", "/"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, operators, inner).map(lambda parts: f"({' '.join(parts)})")
    choice = st.tuples(inner, inner).map(
        lambda parts: "({0} if {0} > {1} else max({0}, {1}))".format(*parts)
    )
    return binary | choice


arithmetic = st.recursive(numbers, larger, max_leaves=8).filter(lambda text: len(text) < LONGEST)


@pytest.mark.slow
@settings(deadline=None)
@given(arithmetic)
def test_evaluate_computes_arithmetic_as_python_does(text: str) -> None:
    try:
        expected = eval(text, {"size": 8, "max": max})  # made above: numbers and operators
    except ZeroDivisionError:
        with pytest.raises(SteptimeError, match="divides by zero"):
            value(text)
    else:
        assert value(text) == expected


@settings(deadline=None)
@given(st.text(max_size=60))
def test_evaluate_computes_or_refuses_any_text(text: str) -> None:
    try:
        evaluate(text, NAMES.get, {}, "")
    except SteptimeError as problem:
        assert str(problem)


@pytest.mark.parametrize("text", ["round(5, -10**9)", "round(5, 10**9)", "round(5.5, -31)"])
def test_round_to_too_many_digits_is_refused_at_once(text: str) -> None:
    with pytest.raises(SteptimeError, match="digits must be a whole number from -30 to 30"):
        evaluate(text, str, {})


def test_round_is_that_of_python() -> None:
    assert [
        evaluate(text, str, {}) for text in ("round(2.5)", "round(1234, -2)", "round(1.26, 1)")
    ] == [
        2,
        1200,
        1.3,
    ]


def test_lists_in_lists_count_with_all_their_elements() -> None:
    inner = [0] * 900
    with pytest.raises(SteptimeError, match="too large"):
        evaluate("[x, x]", lambda name: inner, {})
