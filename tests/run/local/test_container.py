"""Workers in containers: command lines as text, and what is installed here for real."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from steptime.analysis.usage import usage
from steptime.core.case import Case
from steptime.core.container import Container
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.compare import compare
from steptime.run.local import LocalExecutor
from steptime.run.local.container import PACKAGE, ContainerLaunch, find_image
from steptime.run.local.environment import PARENT
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

VARIABLES = {"OMP_NUM_THREADS": "1", "PYTHONPATH": PACKAGE, "PATH": os.environ["PATH"]}


@pytest.fixture
def job(short: Protocol) -> Job:
    case = Case(
        workload="mnist-mlp",
        framework="numpy",
        precision="fp64",
        batch_size=4,
        threads=1,
        launch="box",
    )
    return Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STEPTIME_DATA", raising=False)
    return tmp_path


def line(job: Job, store: Path, kind: str, options: tuple[str, ...] = ()) -> list[str]:
    launch = ContainerLaunch(Container(kind, "the-image", "python", options), "machine.toml")
    return launch.command(job, VARIABLES, store)


class TestCommandLines:
    def test_podman_command_mounts_folders_and_passes_variables(self, job: Job, here: Path) -> None:
        found = line(job, Path("/nowhere/store"), "podman", ("--memory=2g",))
        assert found[:3] == ["podman", "run", "--rm"] and found[-2:] == ["the-image", "python"]
        assert (
            f"--mount=type=bind,source={here},target={here}" in found
            and f"--workdir={here}" in found
        )
        assert any(word.endswith(f"target={PACKAGE}/steptime,readonly") for word in found)
        assert {
            "--env=OMP_NUM_THREADS",
            "--env=PYTHONPATH",
            "--memory=2g",
            "--pull=never",
            "--uts=host",
        } <= set(found)
        assert f"--name=steptime-{job.id}" in found and "--env=PATH" not in found

    def test_docker_command_runs_as_this_user(self, job: Job, here: Path) -> None:
        found = line(job, here, "docker")
        assert found[0] == "docker" and f"--user={os.getuid()}:{os.getgid()}" in found

    def test_apptainer_command_passes_no_variables(self, job: Job, here: Path) -> None:
        found = line(job, here, "apptainer")
        assert found[:3] == ["apptainer", "exec", f"--pwd={here}"] and found[-2:] == [
            "the-image",
            "python",
        ]
        assert f"--bind={here}:{here}" in found and not any(
            word.startswith("--env") for word in found
        )

    def test_bubblewrap_command_has_a_read_only_system(self, job: Job, here: Path) -> None:
        found = line(job, here, "bubblewrap", ("--unshare-net",))
        assert found[:4] == ["bwrap", "--ro-bind", "the-image", "/"] and found[-2:] == [
            "--unshare-net",
            "python",
        ]
        assert (
            found[found.index("--bind") :][:3] == ["--bind", str(here), str(here)]
            and "--die-with-parent" in found
        )

    @pytest.mark.parametrize(
        ("kind", "word"),
        [
            ("podman", "--device=nvidia.com/gpu=all"),
            ("docker", "--gpus=all"),
            ("apptainer", "--nv"),
        ],
    )
    def test_command_passes_the_gpu_if_the_case_needs_it(
        self, job: Job, here: Path, kind: str, word: str
    ) -> None:
        assert word not in line(job, here, kind)
        assert word in line(replace(job, case=replace(job.case, device="cuda:0")), here, kind)

    def test_command_mounts_store_data_and_tier_once(
        self, job: Job, here: Path, tmp_path: Path
    ) -> None:
        for name in ("store", "data", "tier"):
            (tmp_path / name).mkdir()
        launch = ContainerLaunch(Container("apptainer", "x.sif"), "machine.toml")
        staged = replace(job, options={"tier": str(tmp_path / "tier")})
        found = launch.command(
            staged, {"STEPTIME_DATA": str(tmp_path / "data")}, tmp_path / "store"
        )
        seen = [
            word.removeprefix("--bind=").split(":")[1:]
            for word in found
            if word.startswith("--bind")
        ][1:]
        assert seen == [
            [str(here)],
            [str(here / "data"), "ro"],
            [str(here / "store")],
            [str(here / "tier")],
        ]

    def test_variables_use_the_packages_of_the_image(self) -> None:
        found = ContainerLaunch(Container("podman", "x"), "f").variables(
            {"PYTHONPATH": "/mine", PARENT: "1"}
        )
        assert found == {"PYTHONPATH": PACKAGE}


class TestImages:
    def test_find_image_hashes_a_sif_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.sif").write_bytes(b"abc")
        assert find_image("apptainer", str(tmp_path / "a.sif")).digest.startswith(
            "sha256:ba7816bf8f01cfea"
        )

    def test_find_image_explains_the_missing_digest_of_a_folder(self, tmp_path: Path) -> None:
        found = find_image("bubblewrap", str(tmp_path))
        assert found.exists and not found.digest and found.absence == "a folder has no digest"

    @pytest.mark.parametrize(
        ("answer", "digest"),
        [
            ('[{"Id": "sha256:11", "RepoDigests": ["ubuntu@sha256:22"]}]', "sha256:22"),
            ('[{"Id": "11", "Digest": "sha256:33"}]', "sha256:33"),
            ('[{"Id": "sha256:11", "RepoDigests": []}]', "sha256:11"),
        ],
    )
    def test_find_image_asks_docker_for_the_digest(
        self, answer: str, digest: str, program: Callable[[str, str], None]
    ) -> None:
        program("docker", f"echo '{answer}'")
        assert find_image("docker", f"ubuntu {digest}").digest == digest

    def test_absence_names_the_pull_command(self, program: Callable[[str, str], None]) -> None:
        program("podman", "echo '[]'; exit 125")
        launch = ContainerLaunch(Container("podman", "unheard-of"), "machine.toml")
        assert "`podman pull unheard-of` fetches it" in launch.absence

    def test_absence_names_a_missing_program(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert (
            "bwrap is not installed here"
            in ContainerLaunch(Container("bubblewrap", "/"), "machine.toml").absence
        )


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts one that does this before all others."""

    def write(name: str, text: str) -> None:
        folder = tmp_path / "programs"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return write


@pytest.fixture
def box(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch `box` by bubblewrap, with this machine's own system."""
    ask = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "true"]
    if not shutil.which("bwrap"):
        pytest.skip("there is no bubblewrap here: apt-get install bubblewrap")
    if subprocess.run(ask, capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap may not make namespaces here")
    # Which may lie in /tmp, and that is another one inside.
    own = f'["--ro-bind", "{sys.prefix}", "{sys.prefix}"]'
    text = (
        f"[launches.box]\n"
        f'container = "bubblewrap"\n'
        f'image = "/"\n'
        f'python = "{sys.executable}"\n'
        f"options = {own}"
    )
    (here / "machine.toml").write_text(text)
    monkeypatch.setenv("STEPTIME_MACHINE", str(here / "machine.toml"))


@pytest.fixture
def pod(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A launch `box` by podman, whose image is empty and sees this machine's own folders."""
    if not shutil.which("podman") or not shutil.which("runc"):
        pytest.skip("there is no podman with runc here: apt-get install podman runc")
    storage = f'[storage]\ndriver = "vfs"\nrunroot = "{here}/run"\ngraphroot = "{here}/images"\n'
    engine = (
        '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
        '[engine]\nruntime = "runc"\n'
        'cgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
    )
    for name, text in (("storage.conf", storage), ("containers.conf", engine)):
        (here / name).write_text(text)
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(here / "storage.conf"))
    monkeypatch.setenv(
        "CONTAINERS_CONF", os.environ.get("CONTAINERS_CONF", str(here / "containers.conf"))
    )
    with tarfile.open(here / "empty.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("empty"), io.BytesIO())
    done = subprocess.run(
        ["podman", "import", "empty.tar", "box"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"podman takes no image here: {done.stderr.strip()[-200:]}")
    # Not the folders above them: the package's place in /tmp must stay writable.
    folders = [sys.prefix, sys.base_prefix, "/usr", "/etc"]
    folders += [f"/{name}" for name in ("bin", "lib", "lib64") if Path(f"/{name}").is_dir()]
    options = ", ".join(f'"--volume={folder}:{folder}:ro"' for folder in dict.fromkeys(folders))
    text = (
        f"[launches.box]\n"
        f'container = "podman"\n'
        f'image = "box"\n'
        f'python = "{sys.executable}"\n'
        f"options = [{options}]"
    )
    (here / "machine.toml").write_text(text)
    monkeypatch.setenv("STEPTIME_MACHINE", str(here / "machine.toml"))
    yield
    subprocess.run(["podman", "rmi", "--force", "box"], capture_output=True, check=False)


@pytest.mark.live
@pytest.mark.usefixtures("no_orphans")
class TestWorkers:
    @pytest.mark.parametrize(("kind", "name"), [("bubblewrap", "box"), ("podman", "pod")])
    def test_run_in_a_container_records_the_container(
        self, kind: str, name: str, request: pytest.FixtureRequest, job: Job, here: Path
    ) -> None:
        request.getfixturevalue(name)
        attempt = LocalExecutor().run(job, FolderStore(Path("results")))
        assert attempt.failure is None and attempt.measurement is not None
        told = attempt.environment["container"]
        assert told["kind"] == kind and kind in told["version"] and attempt.case.launch == "box"
        assert bool(told["digest"].startswith("sha256:")) == (kind == "podman")
        assert (
            attempt.environment["OMP_NUM_THREADS"] == "1"
            and attempt.measurement.facts.get("threads", 1) == 1
        )

    @pytest.mark.parametrize("name", ["box", "pod"])
    def test_monitor_sees_the_worker_in_a_container(
        self, name: str, request: pytest.FixtureRequest, job: Job, short: Protocol
    ) -> None:
        request.getfixturevalue(name)
        watched = replace(job, protocol=replace(short, monitor_seconds=0.1, least_seconds=1.0))
        found = usage(LocalExecutor().run(watched, FolderStore(Path("results"))))
        assert found is not None and "partial" not in found and found["cpus"]["mean"] > 0.05

    @pytest.mark.parametrize("name", ["box", "pod"])
    def test_time_limit_ends_a_worker_in_a_container(
        self, name: str, request: pytest.FixtureRequest, job: Job, short: Protocol
    ) -> None:
        request.getfixturevalue(name)
        # Too short to start: a worker that has begun to measure ends in time by itself.
        brief = replace(job, protocol=replace(short, limit_seconds=0.2))
        failure = LocalExecutor().run(brief, FolderStore(Path("results"))).failure
        assert failure is not None and failure.cause == "timed_out"

    @pytest.mark.usefixtures("pod")
    def test_container_of_a_client_that_died_before_its_start_is_removed(
        self, job: Job, program: Callable[[str, str], None]
    ) -> None:
        podman = shutil.which("podman")
        dies = f'shift; {podman} create "$@" || exit 1; touch created; kill -9 $$'
        program("podman", f'if [ "$1" = run ]; then {dies}; fi; exec {podman} "$@"')
        failure = LocalExecutor().run(job, FolderStore(Path("results"))).failure
        assert failure is not None and failure.reason == "The worker was killed by SIGKILL."
        listed = subprocess.run(
            [str(podman), "ps", "--all", "--quiet"], capture_output=True, text=True, check=True
        )
        assert Path("created").exists() and listed.stdout == ""

    @pytest.mark.usefixtures("box")
    def test_compare_measures_the_cost_of_a_container(self, job: Job, short: Protocol) -> None:
        cases = (replace(job.case, launch=""), job.case)
        protocol = replace(short, pair_looks=(2,), pair_blocks=2)
        found = compare(cases, protocol, FolderStore(Path("results")))
        assert found.comparison.units == 2 and found.comparison.verdict.ratio > 0
        assert ["container" in side.environment for side in found.pairs[0]] == [False, True]

    def test_run_records_an_unknown_launch(self, job: Job, here: Path) -> None:
        failure = LocalExecutor().run(job, FolderStore(Path("results"))).failure
        assert (
            failure is not None
            and failure.cause == "unsupported"
            and "has no 'box', found none" in failure.reason
        )
