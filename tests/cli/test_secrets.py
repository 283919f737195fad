"""No output of any command shows a secret that the environment or the machine file held."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import Command
from factories import make_attempt, make_failed_attempt, make_times, write_journal
from mutations import unseal
from secret_kinds import SECRETS, leaks, words
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.secrets import MARK
from steptime.run.local.environment import worker_environment
from steptime.store import checksums, push
from steptime.store.folder import FolderStore
from steptime.store.journals import paths, scan

pytest.importorskip("duckdb", reason="the index is not installed: pip install '.[guide]'")


def shell() -> dict[str, str]:
    """Variables whose prefixes are those of libraries, each with a secret."""
    variables = {f"NVIDIA_{kind.upper()}_API_KEY": secret for kind, (secret, _) in SECRETS.items()}
    variables |= {f"NCCL_{kind.upper()}": word for kind, word in zip(SECRETS, words(), strict=True)}
    # A listed variable can hold a secret, too.
    return variables | {"XLA_FLAGS": " ".join(words()), "LD_PRELOAD": "/lib/x.so"}


def facts() -> dict[str, Any]:
    attempt = make_attempt([1] * 40)
    job = Job(
        id="j",
        session="s",
        plan="p",
        process=0,
        case=attempt.case,
        protocol=attempt.protocol,
    )
    container = {"kind": "podman", "image": "x", "options": words()}
    slurm = {"request": words(), "LOADEDMODULES": " ".join(words())}
    environment = worker_environment(job, shell()).facts
    return {**environment, "launch": words(), "container": container, "slurm": slurm}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    # Its form is that of a hash: in prose it is known only by the variable that holds it.
    monkeypatch.setenv("WANDB_API_KEY", SECRETS["wandb"][0])
    store = FolderStore(tmp_path / "results")
    text = "\n".join(words())
    attempt = make_attempt(make_times(0), environment=facts())
    write_journal(store, replace(attempt, findings={"note": text}, software={"torch": text}))
    failed = make_failed_attempt(Cause.CRASHED, reason=text, environment=facts(), phase="inference")
    assert failed.failure is not None
    write_journal(store, replace(failed, failure=replace(failed.failure, output=text)))
    return store


def test_journal_has_no_secret(store: FolderStore) -> None:
    for path in paths(store.path):
        text = path.read_text()
        assert leaks(text) == [] and MARK in text and "/lib/x.so" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "results"],
        ["list", "results", "--json"],
        ["report", "--json"],
        ["export", "csv", "-o", "out.csv"],
        ["export", "dlbs", "-o", "out"],
        ["export", "mlperf_training_log", "-o", "out"],
        ["status"],
        ["status", "--json"],
        ["store", "check"],
    ],
)
def test_command_shows_no_secret(
    arguments: list[str], store: FolderStore, steptime: Command, tmp_path: Path
) -> None:
    done = steptime(*arguments)
    texts = [done.stdout, done.stderr]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file() and _is_text(path)]
    assert leaks("".join(texts)) == []


def _is_text(path: Path) -> bool:
    try:
        path.read_text()
    except UnicodeDecodeError:
        return False
    return True


def test_show_has_no_secret(store: FolderStore, steptime: Command) -> None:
    for path in paths(store.path):
        for flags in ([], ["--json"]):
            done = steptime("show", path.stem, *flags)
            assert done.returncode == 0, done.stderr
            assert leaks(done.stdout) == []


def test_guide_shows_no_secret(store: FolderStore) -> None:
    testclient = pytest.importorskip("fastapi.testclient")
    from steptime.index.workspace import Workspace
    from steptime.web.access import Access
    from steptime.web.server import make_app

    app = make_app(Workspace(store), Access(token=""))
    client = testclient.TestClient(app, base_url="http://127.0.0.1:8765")
    addresses = ["/", "/runs", "/runs.csv", "/history", "/machines", "/campaigns", "/compare"]
    addresses += ["/report.html", "/certificates", "/api/v1/runs", "/api/v1/chart"]
    for path in paths(store.path):
        addresses += [f"/run/{path.stem}", f"/api/v1/runs/{path.stem}"]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert leaks(answer.text) == [], address


def write_old_journal(store: FolderStore) -> str:
    """A journal as versions before the redaction wrote it."""
    identifier = write_journal(store, make_attempt(make_times(1), environment={}))
    path = store.journal(identifier)
    lines = path.read_text().split("\n")
    begin = json.loads(lines[0])
    begin["environment"] = {**shell(), "launch": words()}
    lines[0] = json.dumps(begin, separators=(",", ":"))
    path.write_text("\n".join(lines))
    unseal(path)
    return identifier


def test_push_sends_no_secret(store: FolderStore) -> None:
    write_old_journal(store)
    journals = list(scan(paths(store.path)))
    assert len(journals) == 3
    for journal in journals:
        row = push._run_row(journal)
        assert leaks(str(row)) == [] and MARK in row["journal"]


def test_push_seals_again_what_it_redacts(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value may become known as a secret after it was written."""
    attempt = make_attempt(make_times(1), environment={"A": "tell-tale"})
    path = store.journal(write_journal(store, attempt))
    monkeypatch.setenv("SOME_TOKEN", "tell-tale")
    text = push._redact_journal(path.read_text())
    lines = [line.encode() for line in text.splitlines()]
    assert "tell-tale" not in text and checksums.broken_line(lines) is None


def test_show_of_an_older_store_has_no_secret(store: FolderStore, steptime: Command) -> None:
    done = steptime("show", write_old_journal(store), "--json")
    assert done.returncode == 0 and leaks(done.stdout) == []


def test_run_stores_no_secret_of_the_machine_file_or_the_shell(
    steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shell().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.delenv("LD_PRELOAD")
    launch = ["env", "HF_TOKEN=hunter2hunter2", sys.executable]
    machine = tmp_path / "own.toml"
    machine.write_text(f"[frameworks.numpy]\nlaunch = {json.dumps(launch)}\n")
    monkeypatch.setenv("STEPTIME_MACHINE", str(machine))
    settings = ["--set", "framework=numpy", "--set", "precision=fp64", "--preset", "single"]
    done = steptime("run", "--workload", "mnist-mlp", "--batch-size", "1", *settings, "--json")
    assert done.returncode == 0, done.stderr
    (path,) = paths(tmp_path / "results")
    begin = json.loads(path.read_text().partition("\n")[0])
    assert begin["environment"]["launch"] == ["env", f"HF_TOKEN={MARK}", sys.executable]
    assert leaks(path.read_text() + done.stdout + done.stderr) == []


def test_submit_dry_run_shows_no_secret(steptime: Command, tmp_path: Path) -> None:
    variables = {f"V{number}_TOKEN": secret for number, (secret, _) in enumerate(SECRETS.values())}
    lines = [f"{name} = {json.dumps(value)}" for name, value in variables.items()]
    lines_of_words = [word for word in words() if "\n" not in word]
    options = json.dumps(lines_of_words)
    setup = json.dumps([line for line in lines_of_words if "WANDB" not in line])
    machine = tmp_path / "own.toml"
    table = "\n".join(["[slurm.box.environment]", *lines])
    machine.write_text(f"[slurm.box]\noptions = {options}\nsetup = {setup}\n{table}\n")
    (tmp_path / "p.toml").write_text('[constants]\nworkload = "mnist-mlp"\n')
    for flags in ([], ["--json"]):
        done = steptime("submit", "p.toml", "--machine", str(machine), "--dry-run", *flags)
        assert "#SBATCH" in done.stdout, done.stderr
        assert leaks(done.stdout) == []


def test_machine_shows_no_secret(
    steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "own.toml"
    machine.write_text(f"[frameworks.numpy]\nlaunch = {json.dumps([sys.executable, *words()])}\n")
    monkeypatch.setenv("STEPTIME_MACHINE", str(machine))
    for flags in ([], ["--json"]):
        done = steptime("machine", "--no-peaks", *flags)
        assert done.returncode == 0 and MARK in done.stdout
        assert leaks(done.stdout + done.stderr) == []


@pytest.mark.parametrize("command", ["check", "merge", "convert"])
def test_store_errors_show_no_password(command: str, steptime: Command) -> None:
    address = "postgresql://me:hunter2@127.0.0.1:1/db"
    arguments = {"check": [], "merge": [address], "convert": [address, "new"]}[command]
    done = steptime("--store", address, "store", command, *arguments)
    assert done.returncode != 0 and "hunter2" not in done.stdout + done.stderr
