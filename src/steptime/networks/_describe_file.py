"""`python -m steptime.networks._describe_file FILE.py:NAME`: run a user's file, describe a network.

The process may end in any way, so `_user_file` starts it and reads what it answers."""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from steptime import networks
from steptime.core.errors import SteptimeError
from steptime.graph.document import to_document


def main() -> int:
    name, memory_bytes = sys.argv[1], int(sys.argv[2])
    # The descriptor itself, because native code and child processes print without sys.stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer: dict[str, Any]
    try:
        answer = {"network": to_document(networks.load(name))}
    except SteptimeError as problem:
        answer = {"error": str(problem)}
    answers.write(json.dumps(answer))
    answers.flush()
    # What the file left behind, threads or handlers, cannot hold up the answer.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
