"""A page's tables of what stores have proved, without proving anything: `python benchmarks/certificates.py STORE…`.

First every framework's first mode, as `steptime certify --all --markdown` prints it, then the others. Of one case that
several stores have, the last one's counts."""

from __future__ import annotations

import sys

from steptime.cli.commands.certify import CUDA_PRECISIONS, first_mode
from steptime.cli.render.certificates import show_markdown
from steptime.run.certify import Outcome, proved
from steptime.store.folder import FolderStore


def is_first(outcome: Outcome) -> bool:
    return [outcome.case.mode] == first_mode(outcome.case.framework)


if __name__ == "__main__":
    newest = {
        outcome.case.key: outcome for path in sys.argv[1:] for outcome in proved(FolderStore(path))
    }
    found = sorted(
        newest.values(),
        key=lambda one: (one.case.workload, CUDA_PRECISIONS.index(one.case.precision)),
    )
    for device in sorted({outcome.case.device for outcome in found}):
        here = [outcome for outcome in found if outcome.case.device == device]
        print(f"## {device}\n")
        show_markdown([outcome for outcome in here if is_first(outcome)])
        if others := [outcome for outcome in here if not is_first(outcome)]:
            print("\n### Other modes\n")
            show_markdown(others)
    if not found:
        sys.exit("There are no certificates: name the folders of stores that have some.")
