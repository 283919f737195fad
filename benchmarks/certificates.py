"""The tables of certificates in stores, as Markdown: `python benchmarks/certificates.py STORE…`.

Nothing is certified anew. First comes the first mode of every framework, as
`steptime certify --all --markdown` prints it, then the other modes. If several stores have a case,
the last store counts."""

from __future__ import annotations

import argparse
import sys

from steptime.cli.commands.certify import CUDA_PRECISIONS, first_mode
from steptime.cli.render.certificates import show_markdown
from steptime.run.certify import SEMANTICS, Outcome, settled_outcomes
from steptime.store.folder import FolderStore


def is_first_mode(outcome: Outcome) -> bool:
    return [outcome.case.mode] == first_mode(outcome.case.framework)


def order(outcome: Outcome) -> tuple[str, int]:
    """Semantics first."""
    precisions = (SEMANTICS, *CUDA_PRECISIONS)
    return outcome.case.workload, precisions.index(outcome.case.precision)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("stores", nargs="+", metavar="STORE")
    by_case = {}
    for path in parser.parse_args().stores:
        # A later store replaces the cases of an earlier one.
        for outcome in settled_outcomes(FolderStore(path)):
            by_case[outcome.case.key] = outcome
    outcomes = sorted(by_case.values(), key=order)
    if not outcomes:
        sys.exit("These stores have no certificates; `steptime certify` makes them.")
    for device in sorted({outcome.case.device for outcome in outcomes}):
        on_device = [outcome for outcome in outcomes if outcome.case.device == device]
        print(f"## {device}\n")
        show_markdown([outcome for outcome in on_device if is_first_mode(outcome)])
        others = [outcome for outcome in on_device if not is_first_mode(outcome)]
        if others:
            print("\n### Other modes\n")
            show_markdown(others)


if __name__ == "__main__":
    main()
