"""A user's file runs in a process of its own, which may end in any way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import call_command
from steptime import networks, workloads
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.networks import _user_file

NETWORK = """
from steptime.graph import network

@network("mine", title="My own", source="here")
def f(net):
    return net.dense(net.input(4), 2)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path / "results"))
    return tmp_path


def write(code: str) -> str:
    Path("own.py").write_text(code + NETWORK)
    return "own.py:mine"


def test_describe_agrees_with_the_loaded_network() -> None:
    name = write("")
    case = Case(workload=name)
    assert workloads.describe(case) == workloads.load(name).describe(case)
    assert networks.describe(name)["trainable_parameters"] == 10


def test_describe_runs_the_file_once() -> None:
    name = write("open('runs', 'a').write('x')")
    for batch_size in (1, 2, 3):
        workloads.describe(Case(workload=name, batch_size=batch_size))
    assert Path("runs").read_text() == "x"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import os; os._exit(0)", "own.py ended its process with exit code 0 before its network"),
        ("import os; os.kill(os.getpid(), 11)", "own.py was killed by SIGSEGV"),
        ("import sys; print('why', file=sys.stderr, flush=True); sys.exit(3)", "SystemExit: 3"),
        ("x = bytearray(1 << 40)", "own.py cannot be read: MemoryError"),
        ("raise ValueError('no')", "own.py cannot be read: ValueError: no"),
    ],
)
def test_describe_explains_how_a_file_ended(code: str, sentence: str) -> None:
    with pytest.raises(SteptimeError, match=sentence):
        networks.describe(write(code))


def test_describe_ends_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTIME_LOAD_SECONDS", "1")
    with pytest.raises(SteptimeError, match=r"own.py was ended after 1 s. STEPTIME_LOAD_SECONDS"):
        networks.describe(write("while True: pass"))


@pytest.mark.parametrize("text", ["0", "x", "inf", "nan", "-1"])
def test_limit_out_of_range_is_explained(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STEPTIME_LOAD_SECONDS", text)
    with pytest.raises(SteptimeError, match="must be a positive number of seconds"):
        networks.describe(write("y = 1"))


def test_is_user_file_needs_a_name_after_the_file() -> None:
    assert _user_file.is_user_file("a/b.py:c") and not _user_file.is_user_file("resnet50")


def test_show_says_that_a_file_ended_it() -> None:
    done = call_command("show", write("import os; os._exit(0)"))
    assert done.returncode == 1 and "exit code 0 before its network" in done.stderr


def test_run_measures_the_others_if_a_file_ends_its_process() -> None:
    name = write("import os; os._exit(0)")
    workloads_named = f'workload = ["{name}", "mnist-mlp", "absent.py:mine"]'
    settings = 'framework = "numpy"\nprecision = "fp64"\nphase = "inference"\nbatch_size = 1'
    plan = f'name = "p"\npreset = "single"\n[constants]\n{settings}\n[sweep]\n{workloads_named}'
    Path("p.toml").write_text(plan)
    done = call_command("run", "p.toml", "--json")
    records = json.loads(done.stdout)["records"]
    assert {record["case"]["workload"]: record["status"] for record in records} == {
        name: "unreadable",
        "mnist-mlp": "ok",
        "absent.py:mine": "unreadable",
    }
    assert "exit code 0 before its network" in done.stdout and "absent.py" in done.stdout


def test_show_prints_only_its_document() -> None:
    name = write(
        "import os; os.write(1, b'noise'); os.system('echo more noise'); print('even more')"
    )
    done = call_command("show", name, "--json")
    assert json.loads(done.stdout)["name"] == "mine" and "more noise" in done.stderr
