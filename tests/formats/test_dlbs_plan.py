"""DLBS plans as ours: names, extensions, computations; against an oracle and real logs."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptime.core.errors import SteptimeError
from steptime.formats import Original, Skipped, recognise
from steptime.formats.dlbs import parse_log
from steptime.formats.dlbs_plan import read, translate_plan
from steptime.plan.expand import Plan, Request, expand
from steptime.plan.references import Outside

KNOWN = {
    "workload": ["resnet18", "resnet50", "alexnet-owt", "inception-v3"],
    "framework": ["pytorch", "tensorflow"],
}
LOGS = Path(__file__).parents[2] / "../shared/data/results/hpe-dlbs/mlperf_mlbox"
BASE = {"exp.framework": "pytorch", "exp.model": "resnet50"}


def planned(
    parameters: dict[str, Any],
    variables: Any = None,
    extensions: Any = None,
    environment: Any = None,
) -> Plan:
    content = {
        "parameters": parameters,
        "variables": variables or {},
        "extensions": extensions or [],
    }
    toml = translate_plan(json.dumps(content), KNOWN).toml
    return expand(toml, Request(plugin_names=KNOWN, outside=Outside(environment or {})))


def refused(parameters: dict[str, Any], **rest: Any) -> str:
    with pytest.raises(SteptimeError) as problem:
        planned(parameters, **rest)
    return str(problem.value)


def test_names_and_values_become_ours() -> None:
    words = {
        "exp.framework": "nvtfcnn",
        "exp.model": "alexnet_owt",
        "exp.phase": "inference",
        "exp.dtype": "float16",
    }
    case = planned(words | {"exp.replica_batch": 8, "exp.gpus": "2"}).cases[0]
    found = (
        case.framework,
        case.workload,
        case.phase,
        case.precision,
        case.batch_size,
        case.device,
        case.mode,
    )
    assert found == ("tensorflow", "alexnet-owt", "inference", "fp16", 8, "cuda:2", "graph")


def test_missing_settings_get_the_defaults_of_dlbs() -> None:
    case = planned(BASE).cases[0]
    assert (case.batch_size, case.device, case.phase, case.precision, case.exchange) == (
        16,
        "cuda:0",
        "training",
        "fp32",
        "none",
    )


def test_gpus_become_ranks_with_their_exchange() -> None:
    plan = planned(BASE, {"exp.gpus": ["0,1", ""], "exp.phase": ["training", "inference"]})
    found = [(case.device, case.devices, case.exchange) for case in plan.cases]
    assert found == [
        ("cuda:0", 2, "allreduce"),
        ("cuda:0", 2, "independent"),
        ("cpu", 1, "none"),
        ("cpu", 1, "none"),
    ]


def test_real_data_follow_from_exp_data_or_a_folder() -> None:
    def data(parameters: dict[str, Any], variables: Any = None) -> list[str]:
        return [case.data for case in planned(BASE | parameters, variables).cases]

    assert data({}) == data({"exp.data": "synthetic"}) == data({"exp.data_dir": ""}) == ["device"]
    assert data({"exp.data": "real"}) == data({"exp.data_dir": "/imagenet"}) == ["real"]
    assert data({"exp.data_dir": "${NOWHERE}/imagenet"}) == ["real"]
    assert data({"exp.data": "synthetic", "exp.data_dir": "/imagenet"}) == [
        "device"
    ]  # the word counts
    assert data({}, {"exp.data": ["real", "synthetic"]}) == ["real", "device"]
    assert data({}, {"exp.data_dir": ["", "/imagenet"]}) == ["device", "real"]


def test_data_store_and_prefetch_are_noted_with_alternatives() -> None:
    words = {"exp.data_dir": "/imagenet", "exp.data_store": "weka", "mxnet.prefetch_buffer": 10}
    assert translate_plan(json.dumps({"parameters": BASE | words}), KNOWN).notes == (
        "exp.data_dir says that data are real; $STEPTIME_DATA names the folder of the sets",
        "no counterpart: exp.data_store = weka (what data lie on is detected; "
        "`staging` copies them to a tier)",
        "no counterpart: mxnet.prefetch_buffer = 10 (of a framework that is "
        "not here; `prefetch` is a setting)",
    )


def test_references_computations_and_environment_are_translated() -> None:
    values = {
        "my.net": "resnet${DEPTH}",
        "exp.model": "${my.net}",
        "exp.replica_batch": "$(${total} / ${exp.num_gpus})$",
    }
    plan = planned(
        BASE | values | {"total": 64}, {"exp.num_gpus": [1, 2]}, environment={"DEPTH": "18"}
    )
    assert [(case.workload, case.batch_size) for case in plan.cases] == [
        ("resnet18", 64),
        ("resnet18", 32),
    ]


def test_name_that_a_setting_refers_to_has_its_values() -> None:
    plan = planned(BASE | {"exp.dtype": "${kind}"}, {"kind": ["float32", "float16"]})
    assert [case.precision for case in plan.cases] == ["fp32", "fp16"]


def test_nested_reference_becomes_a_table() -> None:
    values = {
        "exp.dtype": "${${exp.framework}.dtype}",
        "pytorch.dtype": "float32",
        "tensorflow.dtype": "float16",
    }
    plan = planned({"exp.model": "resnet50"} | values, {"exp.framework": ["pytorch", "tensorflow"]})
    assert [(case.framework, case.precision) for case in plan.cases] == [
        ("pytorch", "fp32"),
        ("tensorflow", "fp16"),
    ]


def test_pattern_groups_are_filled_into_the_extension() -> None:
    extension = {
        "condition": {"exp.model": "resnet(\\d+)"},
        "parameters": {"exp.replica_batch": "$(${__condition.exp.model_1} * 2)$"},
    }
    plan = planned(BASE, {"exp.model": ["resnet18", "resnet50", "alexnet_owt"]}, [extension])
    assert [case.batch_size for case in plan.cases] == [36, 100, 16]


def test_disabled_experiment_is_excluded_with_its_reason() -> None:
    extension = {"condition": {"exp.replica_batch": 32}, "parameters": {"exp.status": "disabled"}}
    plan = planned(BASE, {"exp.replica_batch": [16, 32]}, [extension])
    assert [case.batch_size for case in plan.cases] == [16]
    assert [(gone.case.batch_size, gone.reason) for gone in plan.excluded] == [
        (32, "exp.status says so")
    ]


def test_names_without_counterpart_are_noted_in_the_plan() -> None:
    words = BASE | {
        "exp.docker_image": "a:b",
        "exp.num_batches": 100,
        "exp.num_warmup_batches": 1,
        "exp.proj": "Mine",
    }
    content = {
        "parameters": words,
        "variables": {"exp.model": ["resnet50", "deep_mnist"], "x.y": [1, 2]},
    }
    found = translate_plan(json.dumps(content), KNOWN)
    assert found.notes == (
        "no counterpart: exp.model = deep_mnist; cases with it are left out",
        "left out: exp.num_warmup_batches = 1, the protocol has warmup_steps = 40",
        "no counterpart: exp.docker_image = a:b (containers are named in the machine file)",
        "no counterpart: x.y = 1, 2; it is not swept",
    )
    assert all(f"# {note}\n" in found.toml for note in found.notes)
    plan = expand(found.toml, Request(plugin_names=KNOWN))
    assert (plan.title, plan.protocol.changes()) == ("Mine", {"least_steps": 100})


def test_extensions_without_effect_are_noted() -> None:
    extensions = [
        {"condition": {"exp.framework": "caffe2"}, "parameters": {"exp.replica_batch": 1}},
        {
            "condition": {"exp.framework": "pytorch"},
            "parameters": {"pytorch.cudnn_benchmark": True},
        },
        {"condition": {"mine": 3}, "parameters": {"exp.replica_batch": 4}},
    ]
    found = translate_plan(json.dumps({"parameters": BASE, "extensions": extensions}), KNOWN)
    assert found.notes[:3] == (
        "left out: extension 1, no value of exp.framework is caffe2",
        "left out: extension 2, it sets nothing that has a counterpart",
        "extension 3: the condition on mine always holds, nothing sets it",
    )


@pytest.mark.parametrize(
    ("parameters", "extensions", "message"),
    [
        ({"exp.framework": "pytorch"}, [], "The DLBS plan names no exp.model."),
        (
            BASE | {"exp.dtype": "complex"},
            [],
            "parameters: exp.dtype = 'complex' has no counterpart here.",
        ),
        (BASE | {"exp.gpus": "0:1"}, [], "exp.gpus: several GPUs inside a replica"),
        (
            BASE | {"exp.replica_batch": "$(uuid.uuid4())$"},
            [],
            "parameters: $(uuid.uuid4())$ cannot be",
        ),
        (
            BASE | {"exp.replica_batch": "$(1 + 2"},
            [],
            "parameters: '$(1 + 2' has a $( without its )$.",
        ),
        (
            BASE | {"exp.replica_batch": "${my.size}"},
            [],
            "parameters: ${my.size} is set nowhere in this file",
        ),
        (
            BASE
            | {
                "exp.dtype": "float16",
                "exp.replica_batch": "$(8 if '${exp.dtype}' == 'float16' else 4)$",
            },
            [],
            "parameters: ${exp.dtype} cannot be translated, its values differ here: 'float16'.",
        ),
        (
            BASE,
            [{"condition": {"exp.cuda": "9.0"}, "parameters": {"exp.dtype": "float16"}}],
            "extension 1: the condition on exp.cuda cannot be translated, its "
            "value is not in this file",
        ),
        (
            BASE | {"x": "$(1 + 2)$"},
            [{"condition": {"x": "[0-9]"}, "parameters": {"exp.dtype": "float16"}}],
            "extension 1: the condition x = [0-9] cannot be translated, it is a "
            "pattern and the value is computed.",
        ),
        (
            BASE,
            [{"condition": {"exp.model": "("}, "parameters": {"exp.dtype": "float16"}}],
            "extension 1: the condition exp.model = '(' is no pattern",
        ),
        (
            BASE,
            [{"conditions": {}}],
            "extension 1 has condition, parameters, cases; found conditions.",
        ),
        (BASE, [7], "extension 1 must be an object, found 7."),
        (BASE | {"exp.dtype": None}, [], "parameters: exp.dtype has no value."),
    ],
)
def test_untranslatable_plan_is_an_error_that_names_it(
    parameters: Any, extensions: Any, message: str
) -> None:
    assert refused(parameters, extensions=extensions).startswith(message)


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"a": 1}', '{"variables": {"exp.model": 3}}', '{"extensions": {}}', "{"]
)
def test_file_that_is_no_plan_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(SteptimeError):
        translate_plan(text, KNOWN)


def test_overridden_framework_needs_no_counterpart() -> None:
    text = json.dumps({"parameters": BASE | {"exp.framework": "caffe2"}})
    with pytest.raises(
        SteptimeError, match=r"'caffe2' has no counterpart here\. See `steptime list frameworks`"
    ):
        translate_plan(text, KNOWN)
    found = translate_plan(text, KNOWN, overridden=["framework"])
    assert found.notes[0] == "no counterpart: exp.framework = caffe2, framework is given"


def test_comments_and_described_parameters_are_read() -> None:
    text = '{\n  // a network\n "parameters": {"exp.model": {"val": "resnet50", "type": "str"}}\n}'
    assert 'workload = "resnet50"' in translate_plan(text, KNOWN).toml


def test_import_of_a_plan_says_what_to_do() -> None:
    file = Original("plan.json", json.dumps({"parameters": BASE}).encode())
    (row,) = read(file)
    assert (
        recognise(file) == "dlbs_plan"
        and isinstance(row, Skipped)
        and "steptime show FILE" in row.reason
    )


# against an interpreter of such plans

MODELS, TYPES, SIZES = ["resnet18", "resnet50", "alexnet_owt"], ["float32", "float16"], [8, 16, 32]
choices: dict[str, list[Any]] = {
    "exp.model": MODELS,
    "exp.dtype": TYPES,
    "exp.replica_batch": SIZES,
    "own": [1, 2],
}
some = {name: st.sampled_from(values) for name, values in choices.items()}
patterns = st.sampled_from(["resnet.*", ".*(18|owt)", "alexnet_owt", "nothing.*"])
wanted: dict[str, st.SearchStrategy[Any]] = some | {
    "exp.model": patterns | st.lists(some["exp.model"], min_size=1, max_size=2)
}
changes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional=some)
parts: dict[str, st.SearchStrategy[Any]] = {
    "parameters": changes,
    "cases": st.lists(changes, min_size=1, max_size=2),
}
conditions: st.SearchStrategy[Any] = st.fixed_dictionaries({}, optional=wanted)
extension = conditions.flatmap(
    lambda when: st.fixed_dictionaries({"condition": st.just(when)}, optional=parts)
)
variables = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(st.sampled_from(values), min_size=1, max_size=3)
        for name, values in choices.items()
    },
)


def experiments(
    variables: dict[str, Any], extensions: list[dict[str, Any]]
) -> set[tuple[Any, ...]]:
    found = set()
    start = {"exp.model": "resnet50", "exp.dtype": "float32", "exp.replica_batch": 16, "own": 1}
    for chosen in product(*variables.values()):
        spread = [start | dict(zip(variables, chosen, strict=True))]
        for rule in extensions:
            cases = [rule.get("parameters", {}) | case for case in rule.get("cases", [{}])]
            spread = [
                new
                for point in spread
                for new in ([point | case for case in cases] if meets(rule, point) else [point])
            ]
        found |= {
            (point["exp.model"], point["exp.dtype"], point["exp.replica_batch"]) for point in spread
        }
    return found


def meets(rule: dict[str, Any], point: dict[str, Any]) -> bool:
    return all(
        any(
            point[name] == answer or re.match(f"{answer}$", str(point[name]))
            for answer in _listed(wanted)
        )
        for name, wanted in rule["condition"].items()
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@settings(deadline=None, max_examples=150)
@given(variables, st.lists(extension, max_size=3))
def test_cases_are_the_experiments_of_dlbs(
    variables: dict[str, Any], extensions: list[dict[str, Any]]
) -> None:
    plan = planned(BASE | {"own": 1}, variables, extensions)
    types = {"fp32": "float32", "fp16": "float16"}
    found = {
        (case.workload.replace("-", "_"), types[case.precision], case.batch_size)
        for case in plan.cases
    }
    assert found == experiments(variables, extensions)


@pytest.mark.skipif(not LOGS.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    ("folder", "variables"),
    [
        (
            "01_introduction/logs",
            {"exp.model": ["alexnet_owt", "resnet50"], "exp.replica_batch": [4, 8, 16, 32]},
        ),
        (
            "03_mlbox/mlbox_example/logs",
            {"exp.dtype": ["float16", "float32"], "exp.replica_batch": [2, 4, 8, 16]},
        ),
    ],
)
def test_plans_of_real_logs_give_the_cases_that_were_run(
    folder: str, variables: dict[str, Any]
) -> None:
    runs = [parse_log(path.read_text()) for path in sorted((LOGS / folder).glob("*.log"))]
    plan = planned(BASE | {"exp.framework": "nvtfcnn"}, variables)
    names = ("exp.model", "exp.dtype", "exp.replica_batch", "exp.phase", "exp.num_gpus")
    types = {"fp32": "float32", "fp16": "float16"}
    found = {
        (
            case.workload.replace("-", "_"),
            types[case.precision],
            case.batch_size,
            case.phase,
            case.devices,
        )
        for case in plan.cases
    }
    assert len(runs) == 8 and found == {tuple(run[name] for name in names) for run in runs}
