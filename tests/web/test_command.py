"""`steptime guide` as a process."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("uvicorn", reason="the guide is not installed: pip install '.[guide]'")


def guide(folder: Path, *words: str, files: int = 0) -> subprocess.Popen[str]:
    """`files`: how many the process may open; 0 for as many as this one."""
    command = [sys.executable, "-m", "steptime", "--store", str(folder), "guide", *words]
    if files:
        command = ["prlimit", f"--nofile={files}", *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_guide_command_reports_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = guide(tmp_path, "--port", str(taken.getsockname()[1]))
        _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Address already in use. Choose another with --port." in said and "Traceback" not in said


def test_guide_command_refuses_another_host_without_a_token(tmp_path: Path) -> None:
    process = guide(tmp_path, "--host", "0.0.0.0")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1 and "give a token with --token or $STEPTIME_TOKEN" in said


def test_guide_command_prints_where_it_listens(tmp_path: Path) -> None:
    with guide(tmp_path, "--port", "0") as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            address = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert address, said
            with urllib.request.urlopen(f"{address[0]}/api/v1/runs", timeout=60) as answer:
                assert answer.status == 200
        finally:
            process.terminate()


@pytest.mark.skipif(not shutil.which("prlimit"), reason="there is no prlimit here")
def test_guide_command_answers_beside_many_half_open_requests(tmp_path: Path) -> None:
    with guide(tmp_path, "--port", "0", files=256) as process, contextlib.ExitStack() as sockets:
        try:
            said = process.stdout.readline() if process.stdout else ""
            address = re.search(r"http://127\.0\.0\.1:(\d+)", said)
            assert address, said
            for _ in range(400):
                connection = socket.create_connection(("127.0.0.1", int(address[1])), timeout=60)
                sockets.enter_context(connection)
                connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
            with urllib.request.urlopen(f"{address[0]}/api/v1/runs", timeout=60) as answer:
                assert answer.status == 200
        finally:
            process.terminate()
