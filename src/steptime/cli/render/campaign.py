"""What the commands for a cluster print: submissions and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steptime.cli import output
from steptime.cli.render.format import describe_case, differing_settings, plural, processes
from steptime.cli.render.table import Column, print_table, quantity
from steptime.core.format import rough_duration
from steptime.core.secrets import redact_words

if TYPE_CHECKING:
    from steptime.run.slurm.campaign import Submission
    from steptime.run.slurm.progress import Progress

# A screen; --json has all.
MOST_FAILURES = 20
ARRAY_COLUMNS = (
    Column("array"),
    Column("section", stays=True),
    quantity("tasks"),
    quantity("processes"),
    Column("request", least=24),
)


def show_progress(progress: Progress) -> None:
    from steptime.run.slurm.progress import STATES, WAITING

    done = f"{progress.count('done')} of {len(progress.processes)} processes done"
    left = "" if progress.is_over else f", {_time_left(progress)}"
    output.echo(f"{progress.name}: {done}{left}.")
    columns = [Column("nodes", stays=True), *map(quantity, STATES)]
    print_table(columns, _state_rows(progress))
    waiting = [process for process in progress.processes if process.state == WAITING]
    reasons = sorted({process.reason for process in waiting if process.reason})
    if reasons:
        output.echo(f"Slurm's reason for the wait: {', '.join(reasons)}.")
    _show_failures(progress)
    if progress.ghosts:
        output.echo(f"{progress.ghosts} late results of lost nodes are not counted.")
    arrays = ", ".join(progress.arrays) or "are gone"
    output.echo(f"Campaign {progress.session}; Slurm's arrays {arrays}.")


def _state_rows(progress: Progress) -> list[list[str]]:
    """One row per type of node, and one for all if there are several types."""
    from steptime.run.slurm.progress import STATES

    node_types = list(dict.fromkeys(process.case.node_type for process in progress.processes))
    rows = []
    if len(node_types) > 1:
        for node_type in node_types:
            states = [p.state for p in progress.processes if p.case.node_type == node_type]
            # Cases without a type of node share one row.
            rows.append([node_type or "all", *(str(states.count(state)) for state in STATES)])
    rows.append(["all", *(str(progress.count(state)) for state in STATES)])
    return rows


def _show_failures(progress: Progress) -> None:
    if not progress.causes:
        return
    counts = [f"{cause.replace('_', ' ')} {n}" for cause, n in progress.causes.most_common()]
    output.echo(f"failed: {', '.join(counts)}; `steptime submit` with the same plan tries again.")
    names = differing_settings([process.case for process in progress.processes])
    failed = [process for process in progress.processes if process.cause]
    for process in failed[:MOST_FAILURES]:
        output.echo(f"  {describe_case(process.case, names)}: {process.cause}. {process.reason}")
    if len(failed) > MOST_FAILURES:
        output.echo(f"  … and {len(failed) - MOST_FAILURES} more; --json lists them all.")


def _time_left(progress: Progress) -> str:
    if progress.seconds_left is None:
        return "time left not known yet"
    return f"about {rough_duration(progress.seconds_left)} left, {progress.basis}"


def show_submission(submission: Submission, *, dry_run: bool) -> None:
    verb = "would be submitted" if dry_run else "submitted"
    arrays = plural(len(submission.arrays), "array")
    output.echo(f"{processes(submission.job_count)} {verb} to Slurm in {arrays}.")
    _show_arrays(submission)
    if submission.done:
        output.echo(f"{processes(submission.done)} already measured.")
    if submission.live:
        output.echo(f"{processes(submission.live)} queued or running.")
    if submission.settled:
        output.echo(f"{submission.settled} cases failed in a way that another try would repeat.")
    if not dry_run:
        output.echo(f"\nCampaign {submission.session}. Next: steptime status, steptime collect.")
    elif submission.scripts:
        # The scripts of all arrays look alike.
        output.echo_verbatim(f"\n{submission.scripts[0]}")


def _show_arrays(submission: Submission) -> None:
    if not submission.arrays:
        return
    numbers = submission.numbers or [""] * len(submission.arrays)
    rows = []
    for number, array in zip(numbers, submission.arrays, strict=True):
        counts = [str(len(array.tasks)), str(len(array.jobs))]
        rows.append([number, array.section.name, *counts, " ".join(redact_words(array.request))])
    print_table(ARRAY_COLUMNS, rows)
