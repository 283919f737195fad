"""vl-convert in a process of its own, which draws one chart after the other.

Where address space is short, its JavaScript engine does not raise an error: it ends its process. So
it must not be the process of the guide or of a command."""

from __future__ import annotations

import atexit
import base64
import json
import resource
import select
import signal
import sys
from importlib.util import find_spec
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock
from typing import Any

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.core.format import byte_count

SECONDS = 120.0
"""The most time for one chart."""


class Converter:
    """Starts with the first chart, and anew with the next one after it has died."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        # The guide draws in several threads.
        self._lock = Lock()
        atexit.register(self.close)

    def convert(self, suffix: str, chart: dict[str, Any]) -> bytes:
        if find_spec("vl_convert") is None:
            raise NotInstalled(
                "This command needs the report extra: pip install 'steptime[report]'"
            )
        with self._lock:
            answer = self._ask(f"{json.dumps([suffix, chart])}\n".encode())
        if "error" in answer:
            raise SteptimeError(f"The chart cannot be drawn: {answer['error']}")
        return base64.b64decode(answer["picture"])

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, request: bytes) -> dict[str, str]:
        if self._process is None:
            command = [sys.executable, "-P", "-m", "steptime.charts.converter"]
            self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        line = b""
        try:
            process.stdin.write(request)
            process.stdin.flush()
            has_answer = bool(select.select([process.stdout], [], [], SECONDS)[0])
            if has_answer:
                line = process.stdout.readline()
        except BrokenPipeError:
            has_answer = True
        if not line:
            reason = _explain_death(process.wait()) if has_answer else f"not in {SECONDS:.0f} s."
            self.close()
            raise SteptimeError(f"The chart cannot be drawn: {reason}")
        answer: dict[str, str] = json.loads(line)
        return answer


def _explain_death(code: int) -> str:
    ending = f"exited with {code}"
    if code < 0:
        ending = f"was ended by {signal.Signals(-code).name}"
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return f"vl-convert {ending}."
    return (
        f"vl-convert {ending}. It reserves between 64 and 96 GB of address space, and the limit "
        f"here is {byte_count(limit)} (ulimit -v). Raise the limit, or write the chart as .json."
    )


def serve() -> None:
    """Answer each line of stdin: a suffix and a chart, as JSON."""
    for line in sys.stdin:
        suffix, chart = json.loads(line)
        print(json.dumps(_draw(suffix, chart)), flush=True)


def _draw(suffix: str, chart: dict[str, Any]) -> dict[str, str]:
    import vl_convert

    try:
        if suffix == ".png":
            # Twice the size, so that a PNG is sharp on screens of high resolution.
            picture = bytes(vl_convert.vegalite_to_png(chart, scale=2))
        elif suffix == ".pdf":
            picture = bytes(vl_convert.vegalite_to_pdf(chart))
        else:
            picture = str(vl_convert.vegalite_to_svg(chart)).encode()
    except ValueError as problem:
        return {"error": str(problem).splitlines()[0]}
    return {"picture": base64.b64encode(picture).decode()}


if __name__ == "__main__":
    serve()
