from __future__ import annotations

from dataclasses import replace

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.plan.machine_file import MachineFile, parse

CASE = Case(workload="mnist-mlp", node_type="k80", devices=2)
TEXT = """
[slurm.k80]
partition = "GPU"
gres = "gpu:k80:{devices}"
time = "00:10:00"
cpus = 7
options = ["--exclusive"]
setup = ["module load cuda"]
environment = { NCCL_DEBUG = "WARN" }
throttle = 3
[tiers]
local = "$LOCAL"
"""


def read(text: str) -> MachineFile:
    return parse(text, "machine.toml", ())


def test_request_has_what_the_case_needs() -> None:
    section = read(TEXT).section("k80")
    wanted = (
        "--partition=GPU",
        "--gres=gpu:k80:2",
        "--time=00:10:00",
        "--cpus-per-task=7",
        "--exclusive",
    )
    assert section.request(CASE) == wanted
    assert (section.setup, section.environment) == (
        ("module load cuda",),
        (("NCCL_DEBUG", "WARN"),),
    )
    assert (section.throttle, section.bundle) == (3, 1) and read(TEXT).tiers == {"local": "$LOCAL"}


def test_shape_ignores_the_time_limit() -> None:
    longer, other = TEXT.replace("00:10", "12:00"), TEXT.replace("load cuda", "load rocm")
    shapes = [read(text).section("k80").shape() for text in (TEXT, longer, other)]
    assert shapes[0] == shapes[1] != shapes[2]


def test_section_without_node_type_is_the_only_one() -> None:
    assert read(TEXT).section("").name == "k80"
    with pytest.raises(SteptimeError, match=r"has k80, p100. Set node_type"):
        read(TEXT + "[slurm.p100]\n").section("")
    with pytest.raises(
        SteptimeError, match=r"there is no machine file. docs/machine-file.md shows one"
    ):
        MachineFile().section("")
    with pytest.raises(SteptimeError, match=r"node_type 'k8'. Did you mean 'k80'"):
        read(TEXT).section("k8")


@pytest.mark.parametrize(
    "text, words",
    [
        (
            '[slurm.a]\npartion = "x"',
            r"line 2: No key of \[slurm.a\] 'partion'. Did you mean 'partition'",
        ),
        ("[slurm.a]\ngres = 3", "line 2: gres must be a text in quotes, found 3"),
        ("[slurm.a]\nthrottle = -1", "line 2: throttle must be a whole number of at least 0"),
        ("[slurm.a]\nbundle = 0", "line 2: bundle must be a whole number of at least 1"),
        ('[slurm.a]\nsetup = "module load x"', "line 2: setup must be a list of texts"),
        ('[slurm.a]\nsetup = ["a\\nb"]', "line 2: setup must be a list of texts, each one line"),
        ("[slurm.a]\nenvironment = { A = 1 }", "line 2: environment must be a table of texts"),
        ('[slurm]\na = "x"', r"line 2: write \[slurm.a\]"),
        ("slurm = 1", r"line 1: write \[slurm.NAME\]"),
        ("[tiers]\nlocal = 1", "line 2: local must be a folder in quotes"),
        ("tiers = 1", r"line 1: write \[tiers\]"),
    ],
)
def test_parse_section_refuses_mistakes_with_their_line(text: str, words: str) -> None:
    with pytest.raises(SteptimeError, match=words):
        read(text)


@pytest.mark.parametrize(
    "gres, words", [("gpu:{device_count}", "No case setting 'device_count'"), ("{", "write {dev")]
)
def test_request_refuses_unknown_placeholders(gres: str, words: str) -> None:
    section = read(f'[slurm.k80]\ngres = "{gres}"').section("k80")
    with pytest.raises(SteptimeError, match=words):
        section.request(CASE)


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [(1, ("--gres=gpu:k80:4",)), (2, ("--gres=gpu:k80:2", "--nodes=2", "--ntasks-per-node=1"))],
)
def test_request_counts_devices_per_node(nodes: int, wanted: tuple[str, ...]) -> None:
    case = replace(CASE, exchange="allreduce", devices=4, nodes=nodes)
    assert read('[slurm.k80]\ngres = "gpu:k80:{devices}"').section("k80").request(case) == wanted
