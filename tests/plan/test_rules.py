"""Overrides that compute, match and fork; the whole language against a plain-Python oracle."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.plan.expand import MOST_POINTS, Plan, Request, expand
from steptime.plan.references import Outside

START = '[constants]\nworkload = "resnet50"\n'


def planned(text: str, **request: Any) -> Plan:
    return expand(text, Request(outside=Outside(environment={"COUNT": "3"}), **request))


def found(plan: Plan, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(case, name) for name in names) for case in plan.cases]


def test_expressions_are_computed_at_each_point() -> None:
    text = START + 'batch_size = "${max(1, 64 // devices)}"\n[sweep]\ndevices = [1, 2, 128]\n'
    assert found(planned(text), "devices", "batch_size") == [(1, 64), (2, 32), (128, 1)]


def test_variables_may_be_tables_indexed_by_a_value() -> None:
    text = (
        '[variables]\nsizes = { a = 8, b = "${8 * 2}" }\nkind = "a"\n'
        + START
        + 'batch_size = "${sizes[kind]}"\n'
    )
    plan = planned(text + '[sweep]\nkind = ["a", "b"]\n')
    assert [size for (size,) in found(plan, "batch_size")] == [8, 16]


def test_sweep_may_be_an_expression() -> None:
    text = (
        "[variables]\nsizes = [1, 2]\n"
        + START
        + "[sweep]\nbatch_size = \"${sizes + [env('COUNT')]}\"\n"
    )
    assert [size for (size,) in found(planned(text), "batch_size")] == [1, 2, 3]


def test_override_makes_a_point_of_each_case() -> None:
    rule = '[[override]]\nwhen = { phase = "inference" }\nset = { data = "host" }\n'
    rule += 'cases = [{}, { precision = "bf16", threads = 1 }]\n'
    plan = planned(START + '[sweep]\nphase = ["training", "inference"]\n' + rule)
    words = [
        ("training", "device", "fp32", 0),
        ("inference", "host", "fp32", 0),
        ("inference", "host", "bf16", 1),
    ]
    assert found(plan, "phase", "data", "precision", "threads") == words


def test_override_makes_the_product_of_its_sweep() -> None:
    rule = "[[override]]\nwhen = \"${phase == 'inference'}\"\n"
    rule += 'sweep = { batch_size = [1, 2], precision = ["fp32", "bf16"] }\n'
    plan = planned(START + '[sweep]\nphase = ["training", "inference"]\n' + rule)
    sizes = [("inference", *words) for words in product([1, 2], ["fp32", "bf16"])]
    assert found(plan, "phase", "batch_size", "precision") == [("training", 32, "fp32"), *sizes]


def test_override_without_condition_applies_to_all() -> None:
    plan = planned(START + "[[override]]\ncases = [{ seed = 1 }, { seed = 2, threads = 4 }]\n")
    assert found(plan, "seed", "threads") == [(1, 0), (2, 4)]


def test_matches_defines_its_named_groups_in_the_rule() -> None:
    rule = '[[override]]\nwhen = { workload = { matches = "resnet(?P<depth>[0-9]+)" } }\n'
    rule += 'set = { threads = "${depth // 10}" }\n'
    plan = planned('[sweep]\nworkload = ["resnet50", "my-resnet18", "resnet101"]\n' + rule)
    assert [threads for (threads,) in found(plan, "threads")] == [5, 0, 10]


def test_request_settings_win_over_cases_and_sweeps() -> None:
    rule = "[[override]]\ncases = [{ batch_size = 2, seed = 1 }, { batch_size = 4 }]\n"
    assert found(planned(START + rule, settings={"batch_size": 9}), "batch_size", "seed") == [
        (9, 1),
        (9, 0),
    ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            'when = "${batch_size}"\nset = { seed = 1 }',
            "line 4: when must compute true or false, found 32",
        ),
        ('when = "often"\nset = { seed = 1 }', "line 4: when is written so: when = { phase"),
        (
            "when = { seed = 1 }",
            "line 3: [[override]] needs set, cases or sweep, for example: set = {",
        ),
        ("cases = []", "line 4: cases is written so: cases = [{"),
        (
            "cases = [\n  { seed = 1 },\n  { precision = 'fp99' },\n]",
            "line 6: No precision 'fp99'.",
        ),
        ("[[override.cases]]\nseed = 1\n[[override.cases]]\nsed = 2", "line 7: No setting 'sed'."),
        ("sweep = { seed = 3 }", "line 4: A sweep needs a list that is not empty, found 3."),
        ('set = { threads = "${hello}" }', "line 4: No name 'hello'."),
        ('set = { threads = "${mni(1, 2)}" }', "line 4: No function 'mni'. Did you mean 'min'?"),
        (
            'set = { threads = "${1 +}" }',
            "line 4: ${1 +}: this cannot be read as a name or a computation.",
        ),
        (
            'set = { threads = "${5 / 2}" }',
            "line 4: threads must be a whole number (// divides to one), found 2.5.",
        ),
        (
            'set = { threads = "${seed}", seed = "${threads}" }',
            "line 4: 'threads' refers to itself: threads → seed",
        ),
        (
            'when = { workload = { matches = "(" } }\nset = { seed = 1 }',
            "line 4: matches needs a regular expression: ",
        ),
        (
            'when = { workload = { matches = "(?P<seed>.)" } }\nset = { seed = 1 }',
            "line 4: The group 'seed' is already a",
        ),
    ],
)
def test_rules_with_mistakes_are_refused_with_their_line(rule: str, message: str) -> None:
    with pytest.raises(SteptimeError) as refused:
        planned(f"{START}[[override]]\n{rule}\n")
    assert str(refused.value).startswith(message)


def test_named_groups_are_unknown_to_other_rules() -> None:
    rule = (
        "[[override]]\n"
        'when = { workload = { matches = "resnet(?P<depth>.*)" } }\n'
        'set = { threads = "${depth}" }\n'
    )
    with pytest.raises(SteptimeError, match="line 7: No name 'depth'"):
        planned(START + rule + '[[exclude]]\nwhen = "${depth > 1}"\nreason = "deep"\n')


def test_variables_need_an_identifier_as_name() -> None:
    with pytest.raises(SteptimeError, match="line 2: 'my-size' cannot be a variable"):
        planned("[variables]\nmy-size = 1\n" + START)


def test_expand_refuses_too_many_points() -> None:
    sizes = list(range(1, 1001))
    with pytest.raises(
        SteptimeError, match=f"line 4: These lists make 1,000,000 points, more than {MOST_POINTS:,}"
    ):
        planned(f"{START}[sweep]\nbatch_size = {sizes}\nthreads = {sizes}\n")


def test_expand_refuses_too_many_repeats() -> None:
    with pytest.raises(
        SteptimeError, match=f"repeats makes 1,000,000,000 cases, more than {MOST_POINTS:,}"
    ):
        planned(f"repeats = 1000000000\n{START}")


def test_expand_stops_rules_that_multiply_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steptime.plan.expand.MOST_POINTS", 300)
    names = ("batch_size", "threads", "seed")
    rules = [f"[[override]]\nsweep = {{ {name} = {list(range(1, 201))} }}\n" for name in names]
    with pytest.raises(SteptimeError, match="More than 300 points"):
        planned(START + "".join(rules))


def test_excluded_omits_cases_that_another_point_runs() -> None:
    text = '[variables]\nkind = "a"\n' + START + '[sweep]\nkind = ["a", "b"]\n'
    plan = planned(text + '[[exclude]]\nwhen = { kind = "b" }\nreason = "why"\n')
    assert (len(plan.cases), plan.excluded) == (1, ())


# the whole language against plain Python

SPACE: dict[str, list[Any]] = {
    "phase": ["training", "inference"],
    "precision": ["fp32", "bf16", "fp16"],
    "batch_size": [1, 8, 32],
    "threads": [0, 1, 2],
}
points = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in SPACE.items()}
)
conditions = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(values) | st.lists(st.sampled_from(values), min_size=1, max_size=2)
        for name, values in SPACE.items()
    }
    | {
        "batch_size": st.integers(0, 40).map(lambda n: {"at_least": n})
        | st.integers(0, 40).map(lambda n: {"at_most": n})
    },
)
lists = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(st.sampled_from(values), min_size=1, max_size=2)
        for name, values in SPACE.items()
    },
)
forks = {"cases": st.lists(points, min_size=1, max_size=2), "sweep": lists.filter(bool)}
overrides = st.fixed_dictionaries(
    {"set": points.filter(bool)}, optional={"when": conditions.filter(bool), **forks}
)
exclusions = st.fixed_dictionaries({"when": conditions.filter(bool), "reason": st.just("why")})
plans = st.fixed_dictionaries(
    {
        "sweep": lists,
        "override": st.lists(overrides, max_size=3),
        "exclude": st.lists(exclusions, max_size=2),
    }
)


def holds(when: dict[str, Any], point: dict[str, Any]) -> bool:
    for name, wanted in when.items():
        if isinstance(wanted, dict):
            if not wanted.get("at_least", 0) <= point[name] <= wanted.get("at_most", 99):
                return False
        elif point[name] not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def oracle(plan: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    kept: list[dict[str, Any]] = []
    gone: list[dict[str, Any]] = []
    for chosen in product(*plan["sweep"].values()):
        spread = [
            {"phase": "training", "precision": "fp32", "batch_size": 32, "threads": 0}
            | dict(zip(plan["sweep"], chosen, strict=True))
        ]
        for rule in plan["override"]:
            spread = [
                new
                for point in spread
                for new in (changed(rule, point) if holds(rule.get("when", {}), point) else [point])
            ]
        for point in spread:
            (gone if any(holds(rule["when"], point) for rule in plan["exclude"]) else kept).append(
                point
            )
    return without_doubles(kept), without_doubles(gone)


def changed(rule: dict[str, Any], point: dict[str, Any]) -> list[dict[str, Any]]:
    sweep = rule.get("sweep", {})
    return [
        point | rule["set"] | case | dict(zip(sweep, chosen, strict=True))
        for case in rule.get("cases", [{}])
        for chosen in product(*sweep.values())
    ]


def without_doubles(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [point for i, point in enumerate(some) if point not in some[:i]]


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {toml(inner)}' for name, inner in value.items())} }}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def as_text(plan: dict[str, Any]) -> str:
    parts = [
        START,
        "[sweep]\n",
        *(f"{name} = {toml(values)}\n" for name, values in plan["sweep"].items()),
    ]
    for kind in ("override", "exclude"):
        for rule in plan[kind]:
            parts += [f"[[{kind}]]\n", *(f"{name} = {toml(part)}\n" for name, part in rule.items())]
    return "".join(parts)


def settings_of(case: Case) -> dict[str, Any]:
    return {name: getattr(case, name) for name in SPACE}


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(plans)
def test_expand_agrees_with_a_plain_python_oracle(plan: dict[str, Any]) -> None:
    expanded = planned(as_text(plan))
    kept, gone = oracle(plan)
    assert [settings_of(case) for case in expanded.cases] == kept
    assert [settings_of(excluded.case) for excluded in expanded.excluded] == gone


@settings(deadline=None)
@given(plans, st.randoms(use_true_random=False))
def test_expand_gives_the_same_cases_in_any_order_of_names(plan: dict[str, Any], rng: Any) -> None:
    names = list(plan["sweep"])
    rng.shuffle(names)
    other = plan | {
        "sweep": {name: plan["sweep"][name] for name in names},
        "exclude": plan["exclude"][::-1],
    }
    first, second = planned(as_text(plan)), planned(as_text(other))
    assert set(first.cases) == set(second.cases)
    assert {gone.case for gone in first.excluded} == {gone.case for gone in second.excluded}


@settings(deadline=None)
@given(st.permutations(["a = 3", 'b = "${a + 1}"', 'c = "${b * d}"', "d = 2"]))
def test_variables_may_be_defined_in_any_order(lines: list[str]) -> None:
    text = "\n".join(["[variables]", *lines, START, "[sweep]", 'batch_size = ["${c}"]'])
    assert planned(text).cases[0].batch_size == 8
