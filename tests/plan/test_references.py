"""References: types kept, defaults used, loops refused."""

from __future__ import annotations

import pytest

from steptime.core.errors import SteptimeError
from steptime.plan.parse import Value
from steptime.plan.references import Outside, Scope, parse_scalar


def scope(**values: object) -> Scope:
    outside = Outside(environment={"SIZE": "64", "HOME": "/home/x"}, machine={"device": "cuda:0"})
    return Scope({name: Value(value, 7) for name, value in values.items()}, outside)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${size}", 8),
        ("batch of ${size}", "batch of 8"),
        ("${env:SIZE}", 64),
        ("${env:HOME}/data", "/home/x/data"),
        ("${env:NOWHERE:-cuda:1}", "cuda:1"),
        ("${machine:device}", "cuda:0"),
        ("${twice}", 8),
        ("plain", "plain"),
    ],
)
def test_scope_resolves_references(written: str, meant: object) -> None:
    assert scope(size=8, twice="${size}", asked=written).value("asked") == meant


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("${env:NOWHERE}", "line 7: The environment variable 'NOWHERE' is not set."),
        ("${machine:devise}", "line 7: No fact of the machine 'devise'. Did you mean 'device'?"),
        ("${siz}", "line 7: No name 'siz'. Did you mean 'size'?"),
        ("${loop}", "line 7: 'asked' refers to itself: asked → loop → asked."),
        ("${size", "line 7: A reference is ${name} or ${env:NAME}, found '${size'."),
        ("${size:-9}", "line 7: Only env and machine references take a default"),
    ],
)
def test_scope_refuses_dangling_references_with_their_line(written: str, message: str) -> None:
    with pytest.raises(SteptimeError) as refused:
        scope(size=8, loop="${asked}", asked=written).value("asked")
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("written", "meant"), [("8", 8), ("1e-3", 0.001), (".5", 0.5), ("2E3", 2000.0), ("e5", "e5")]
)
def test_parse_scalar_reads_numbers(written: str, meant: object) -> None:
    assert parse_scalar(written) == meant and type(parse_scalar(written)) is type(meant)


def test_resolve_keeps_outside_text_inside_a_longer_text() -> None:
    outside = Outside(environment={"VERSION": "1.10"})
    assert Scope({}, outside).resolve(Value("data-${env:VERSION}")) == "data-1.10"
