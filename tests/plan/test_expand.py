"""Plans: the product, rules, references, and refusals that name the line."""

from __future__ import annotations

import re
from itertools import product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.core.case import CHOICES
from steptime.core.errors import SteptimeError
from steptime.plan.expand import Plan, Request, expand, expand_settings
from steptime.plan.references import Outside

KNOWN = {"workload": ["resnet50", "alexnet-owt", "mnist-mlp"], "framework": ["pytorch", "numpy"]}
SHIPPED = sorted((Path(__file__).parents[2] / "src/steptime/plans").glob("*.toml"))

PLAN = """\
name = "example"
preset = "quick"
repeats = 2

[variables]
gpu = "${env:GPU:-cuda:0}"

[constants]
workload = "resnet50"

[sweep]
phase = [
    "training",
    "inference",
]
batch_size = [1, 32]

[[override]]
when = { phase = "inference" }
set = { precision = "fp16", device = "${gpu}" }

[[exclude]]
when = { phase = "training", batch_size = { at_most = 1 } }
reason = "too small"
"""


def planned(text: str, **request: object) -> Plan:
    return expand(text, Request(plugin_names=KNOWN, **request))  # type: ignore[arg-type]


def test_expand_applies_overrides_exclusions_and_repeats() -> None:
    plan = planned(PLAN)
    found = [
        (case.phase, case.batch_size, case.precision, case.device, case.trial)
        for case in plan.cases
    ]
    settings = [
        ("training", 32, "fp32", "cpu"),
        ("inference", 1, "fp16", "cuda:0"),
        ("inference", 32, "fp16", "cuda:0"),
    ]
    assert found == [(*words, trial) for words in settings for trial in (0, 1)]
    assert [(excluded.case.batch_size, excluded.reason) for excluded in plan.excluded] == [
        (1, "too small")
    ]
    assert (plan.name, plan.protocol.processes_most, plan.notes) == ("example", 3, ())


def test_expand_settings_needs_no_text() -> None:
    request = Request(settings={"workload": "resnet50", "batch_size": [1, 2]}, preset="quick")
    plan = expand_settings("command line", request)
    assert plan == expand('name = "command line"', request)
    assert [case.batch_size for case in plan.cases] == [1, 2]


MODES = {"jax": "compiled", "openvino": "graph"}


def test_expand_uses_the_default_mode_of_a_framework() -> None:
    text = 'constants.workload = "resnet50"\nsweep.framework = ["pytorch", "jax", "openvino"]\n'
    assert [case.mode for case in expand(text, Request(modes=MODES)).cases] == [
        "eager",
        "compiled",
        "graph",
    ]
    said = expand(text, Request(modes=MODES, settings={"mode": "eager"}))
    assert [case.mode for case in said.cases] == ["eager"] * 3


def test_rules_see_the_default_mode_of_the_framework_they_chose() -> None:
    rules = (
        "[[override]]\n"
        'set = { framework = "jax" }\n'
        "[[exclude]]\n"
        'when = { mode = "compiled" }\n'
        'reason = "slow"\n'
    )
    plan = expand(f'constants.workload = "resnet50"\n{rules}', Request(modes=MODES))
    assert [(gone.case.framework, gone.case.mode) for gone in plan.excluded] == [
        ("jax", "compiled")
    ]


sweeps = st.fixed_dictionaries(
    {
        "phase": st.lists(st.sampled_from(CHOICES["phase"]), min_size=1, max_size=3, unique=True),
        "precision": st.lists(
            st.sampled_from(CHOICES["precision"]), min_size=1, max_size=3, unique=True
        ),
        "batch_size": st.lists(st.integers(1, 512), min_size=1, max_size=4, unique=True),
    }
)


def written(sweep: dict[str, list[object]]) -> str:
    lines = [f"{name} = {values}" for name, values in sweep.items()]
    return "\n".join(['constants.workload = "resnet50"', "[sweep]", *lines, ""])


@settings(deadline=None)
@given(sweeps)
def test_expand_makes_the_product_in_file_order(sweep: dict[str, list[object]]) -> None:
    plan = planned(written(sweep))
    found = [tuple(getattr(case, name) for name in sweep) for case in plan.cases]
    assert found == list(product(*sweep.values()))
    assert len({case.key for case in plan.cases}) == prod(map(len, sweep.values()))


@settings(deadline=None)
@given(sweeps, st.integers(1, 512), st.sampled_from(CHOICES["phase"]))
def test_exclude_removes_exactly_what_matches(
    sweep: dict[str, list[object]], most: int, phase: str
) -> None:
    rule = (
        f"[[exclude]]\n"
        f'when = {{ phase = "{phase}", batch_size = {{ at_most = {most} }} }}\n'
        f'reason = "why"'
    )
    all_cases, plan = planned(written(sweep)).cases, planned(written(sweep) + rule)
    gone = [case for case in all_cases if case.phase == phase and case.batch_size <= most]
    assert [excluded.case for excluded in plan.excluded] == gone
    assert list(plan.cases) == [case for case in all_cases if case not in gone]


@settings(deadline=None)
@given(sweeps, st.integers(1, 4))
def test_repeats_differ_only_in_the_trial(sweep: dict[str, list[object]], count: int) -> None:
    once, plan = planned(written(sweep)), planned(f"repeats = {count}\n{written(sweep)}")
    assert len(plan.cases) == count * len(once.cases)
    assert [case for case in plan.cases if case.trial == 0] == list(once.cases)


def test_expand_notes_duplicates_and_runs_them_once() -> None:
    plan = planned('[constants]\nworkload = "resnet50"\n[sweep]\nbatch_size = [8, 8, 16]\n')
    assert [case.batch_size for case in plan.cases] == [8, 16]
    assert plan.notes == (
        "1 of 3 points have the same settings as another and run once; "
        "the first is resnet50 training pytorch eager cpu fp32 batch 8.",
        "line 4: batch_size has 8 more than once.",
    )


def test_expand_notes_unused_rules() -> None:
    text = (
        "[constants]\n"
        'workload = "resnet50"\n'
        "[[exclude]]\n"
        'when = { phase = "forward" }\n'
        'reason = "why"\n'
    )
    assert planned(text).notes == ("line 3: this rule applies to no case.",)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            '"inference",',
            '"inferense",',
            "line 14: No phase 'inferense'. Did you mean 'inference'?",
        ),
        ('"resnet50"', '"resnet51"', "line 9: No workload 'resnet51'. Did you mean 'resnet50'?"),
        ("[sweep]", "[sweeps]", "line 11: No key 'sweeps'. Did you mean 'sweep'?"),
        (
            "batch_size = [",
            "batchsize = [",
            "line 16: No setting 'batchsize'. Did you mean 'batch_size'?",
        ),
        ("[1, 32]", "[1, 0]", "line 16: batch_size must be a whole number of at least 1, found 0."),
        ("[1, 32]", "[]", "line 16: A sweep needs a list that is not empty, found []."),
        ("[1, 32]", '[1, "many"]', "line 16: batch_size must be a whole number, found 'many'."),
        ("precision", "precison", "line 20: No setting 'precison'. Did you mean 'precision'?"),
        ('"fp16"', '"fp166"', "line 20: No precision 'fp166'. Did you mean 'fp16'?"),
        ("${gpu}", "${gqu}", "line 20: No name 'gqu'. Did you mean 'gpu'?"),
        ("at_most", "atmost", "line 23: No measure 'atmost'. Did you mean 'at_most'?"),
        (
            'reason = "too small"',
            "",
            'line 22: [[exclude]] needs reason, for example: reason = "why not".',
        ),
        (
            "[[exclude]]",
            "[exclude]",
            "line 22: exclude must be a list of tables: write [[exclude]] above each.",
        ),
        (
            'preset = "quick"',
            'preset = "quik"',
            "line 2: No preset 'quik'. Did you mean 'quick'?",
        ),
        (
            "repeats = 2",
            "repeats = 0",
            "line 3: repeats must be a whole number of at least 1, found 0.",
        ),
        (
            "cuda:0}",
            "gpu0}",
            "line 20: device must be 'cpu' or 'cuda:0', 'cuda:1', …, found 'gpu0'.",
        ),
        (
            'workload = "resnet50"',
            "batch_size = 8",
            "line 16: 'batch_size' is in [constants] and in [sweep]",
        ),
        (
            'workload = "resnet50"',
            'workload = "resnet50"\nnode_type = "a\\u0000b"',
            "line 10: node_type must have no control characters, found 'a",
        ),
        ("[1, 32]", "[1, 3_000_000_000]", "line 16: batch_size must be a whole number of at most"),
        ('workload = "resnet50"', "trial = 3", "line 9: trial counts the repeats"),
        ("repeats = 2", "repeats = ", "This is not TOML: Invalid value (at line 3, column 11)."),
    ],
)
def test_expand_refuses_mistakes_with_line_and_suggestion(
    right: str, wrong: str, message: str
) -> None:
    assert right in PLAN
    with pytest.raises(SteptimeError) as refused:
        planned(PLAN.replace(right, wrong))
    assert str(refused.value).startswith(message)


def test_expand_refuses_mistakes_in_unused_rules() -> None:
    with pytest.raises(SteptimeError, match="line 4: No mode 'eeger'"):
        planned(
            "[constants]\n"
            'workload = "resnet50"\n'
            "[[exclude]]\n"
            'when = { mode = "eeger" }\n'
            'reason = "why"\n'
        )


def test_expand_without_a_workload_says_what_to_write() -> None:
    with pytest.raises(SteptimeError, match='A case needs a workload: write workload = "resnet50"'):
        planned("[sweep]\nbatch_size = [1]\n")


def test_expand_accepts_a_file_as_workload() -> None:
    assert planned('[constants]\nworkload = "mine.py:wide"\n').cases[0].workload == "mine.py:wide"


def test_expand_changes_the_protocol() -> None:
    plan = planned(
        'preset = "gold"\n'
        "[constants]\n"
        'workload = "resnet50"\n'
        "[protocol]\n"
        "target = 0.005\n"
        "pair_looks = [6]\n"
    )
    assert plan.protocol.changes() == {"target": 0.005, "pair_looks": (6,)}
    with pytest.raises(
        SteptimeError, match=r"line 4: No number of the protocol 'targt'. Did you mean 'target'\?"
    ):
        planned('[constants]\nworkload = "resnet50"\n[protocol]\ntargt = 1\n')


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("limit_seconds = inf", "line 4: protocol.limit_seconds must be finite, found inf."),
        ("processes_most = 3_000_000_000", "line 4: protocol.processes_most must be below"),
        ("budget_seconds = 1e300", "line 4: protocol.budget_seconds must be below 2147483647"),
        ("target = 0.0", "line 4: protocol.target must be above 0, found 0.0."),
        (
            "processes_least = 100",
            "line 4: protocol.processes_least must not be above processes_most",
        ),
        ("pair_looks = [8, 4]", "line 4: protocol.pair_looks must be growing whole numbers"),
    ],
)
def test_expand_refuses_protocol_numbers_with_their_line(number: str, message: str) -> None:
    with pytest.raises(SteptimeError) as refused:
        planned(f'[constants]\nworkload = "resnet50"\n[protocol]\n{number}\n')
    assert str(refused.value).startswith(message)


def test_request_settings_win_over_the_plan() -> None:
    plan = planned(PLAN, settings={"batch_size": [4, 8], "precision": "bf16"}, preset="single")
    assert {(case.batch_size, case.precision) for case in plan.cases} == {(4, "bf16"), (8, "bf16")}
    assert plan.protocol.processes_most == 1


def test_variables_may_be_lists_and_may_be_swept() -> None:
    text = """
        [variables]
        sizes = [2, 4]
        kind = "small"
        [constants]
        workload = "resnet50"
        [sweep]
        kind = ["small", "large"]
        batch_size = "${sizes}"
        [[override]]
        when = { kind = "large" }
        set = { workload = "alexnet-owt", threads = "${batch_size}" }
    """
    found = [(case.workload, case.batch_size, case.threads) for case in planned(text).cases]
    assert found == [
        ("resnet50", 2, 0),
        ("resnet50", 4, 0),
        ("alexnet-owt", 2, 2),
        ("alexnet-owt", 4, 4),
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_shipped_plans_expand_without_unused_rules(path: Path, device: str) -> None:
    plan = expand(path.read_text(), Request(outside=Outside(machine={"device": device})))
    assert plan.name == path.stem and plan.title and plan.cases
    assert not [note for note in plan.notes if "rule" in note and device != "cpu"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[constants]\nworkload = ["resnet50", "mnist-mlp"]\n',
            "line 2: workload takes one value here, found a list",
        ),
        (
            '[constants]\nworkload = "resnet50"\n[constants.phase]\nx = 1\n',
            "line 3: phase must be one value",
        ),
        (
            '[constants]\nworkload = "resnet50"\n[sweep]\nphase = [{ at_most = 1 }]\n',
            "line 4: phase must be one value",
        ),
        (
            '[constants]\nworkload = "nets.py"\n',
            "line 2: nets.py is a file: name the network in it too, nets.py:NAME.",
        ),
    ],
)
def test_expand_refuses_lists_and_tables_as_values(text: str, message: str) -> None:
    with pytest.raises(SteptimeError) as refused:
        planned(text)
    assert str(refused.value).startswith(message)


def test_expand_refuses_referenced_lists_outside_a_sweep() -> None:
    with pytest.raises(
        SteptimeError, match=r"line 5: batch_size takes one value here.*belongs into \[sweep\]"
    ):
        planned(
            "[variables]\n"
            "sizes = [1, 2]\n"
            "[constants]\n"
            'workload = "resnet50"\n'
            'batch_size = "${sizes}"\n'
        )


def test_protocol_numbers_may_refer_to_variables() -> None:
    text = (
        "[variables]\n"
        "precise = 0.003\n"
        "[constants]\n"
        'workload = "resnet50"\n'
        "[protocol]\n"
        'target = "${precise}"\n'
    )
    assert planned(text).protocol.target == 0.003


def test_examples_of_the_plans_page_expand_as_described() -> None:
    page = (Path(__file__).parents[2] / "docs/plans.md").read_text()
    complete, computed, rules = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    outside = Outside({"HOME": "/home/x"}, {"cpus": "2", "device": "cpu"})
    plan = expand(complete, Request(outside=outside))
    assert (len(plan.cases), len(plan.excluded), plan.notes) == (2 * 8, 4, ())
    text = computed + 'workload = "resnet50"\n[sweep]\ndevices = [1, 2]\n'
    cases = expand(text, Request(outside=outside)).cases
    assert [(case.batch_size, case.threads) for case in cases] == [(256, 2), (128, 2)]
    sweep = (
        "[sweep]\n"
        'workload = ["resnet50", "ptb-lstm-small"]\n'
        'phase = ["inference"]\n'
        "batch_size = [8, 128]\n"
    )
    assert len(expand(sweep + rules, Request()).cases) == 1 + 3 + 4 + 4


@pytest.mark.parametrize(
    ("name", "value"), [("staging", "disk"), ("page_cache", "cold"), ("prefetch", 2)]
)
@pytest.mark.parametrize("data", ["device", "host"])
def test_expand_refuses_settings_of_files_for_synthetic_data(
    data: str, name: str, value: object
) -> None:
    settings = {"workload": "resnet50", "data": data, name: value}
    expected = f"{name}={value} is for files, and data={data} is synthetic: set data=real"
    with pytest.raises(SteptimeError, match=expected):
        expand_settings("plan", Request(plugin_names=KNOWN, settings=settings))


def test_expand_names_the_line_of_a_tier_for_synthetic_data() -> None:
    text = '[constants]\nworkload = "resnet50"\n[sweep]\nstaging = ["disk"]\n'
    with pytest.raises(SteptimeError, match="line 4: staging=disk is for files"):
        planned(text)


def test_expand_accepts_synthetic_points_with_a_tier_that_are_excluded() -> None:
    text = (
        '[constants]\nworkload = "resnet50"\n[sweep]\nstaging = ["disk"]\n'
        'data = ["device", "real"]\n[[exclude]]\nwhen = { data = "device" }\nreason = "no files"\n'
    )
    assert [case.data for case in planned(text).cases] == ["real"]


def test_plan_psc_reads_real_batches_and_uses_all_its_devices() -> None:
    path = next(path for path in SHIPPED if path.name == "psc.toml")
    names = {"workload": ["deepmnist"], "framework": ["pytorch"]}
    cases = expand(path.read_text(), Request(plugin_names=names)).cases
    assert {case.data for case in cases} == {"real"}
    assert all(case.ranks == case.devices for case in cases)


def test_expand_applies_a_thousand_overrides() -> None:
    rules = "".join(
        f"[[override]]\nwhen = {{ batch_size = 32 }}\nset = {{ seed = {n} }}\n" for n in range(1200)
    )
    (case,) = planned(f'[constants]\nworkload = "resnet50"\n{rules}').cases
    assert case.seed == 1199
