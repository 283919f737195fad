"""All campaigns of a store at a glance, for a page that is loaded again and again.

Asks Slurm seldom and never waits long."""

from __future__ import annotations

import threading
import time
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.run.slurm.client import NoAnswer, Slurm
from steptime.run.slurm.folder import CAMPAIGNS, CampaignFolder, DamagedCampaign
from steptime.run.slurm.progress import FAILED, STATES, ProcessStatus, Progress, read_progress
from steptime.store.folder import FolderStore

FRESH_SECONDS = 2.0
ANSWER_SECONDS = 5.0  # a page is not worth a longer wait
MOST_CAMPAIGNS = 20
MOST_FAILURES = 20
Summary = dict[str, Any]
OVER: Summary = {
    "waiting": 0,
    "running": 0,
    "failed": 0,
    "kinds": [],
    "causes": {},
    "failures": [],
    "seconds_left": 0.0,
    "basis": "",
    "is_over": True,
}


class Overview:
    """Summaries of the newest campaigns, newest first. Simultaneous requests share one answer."""

    def __init__(self, store: FolderStore) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._due = 0.0
        self._summaries: list[Summary] = []

    def __call__(self) -> list[Summary]:
        with self._lock:
            if time.monotonic() >= self._due:
                self._summaries = self._read()
                self._due = time.monotonic() + FRESH_SECONDS
            return self._summaries

    def _read(self) -> list[Summary]:
        paths = self.store.path.glob(f"{CAMPAIGNS}/*/campaign.json")
        names = sorted(path.parent.name for path in paths)
        summaries = []
        trouble = ""
        for name in reversed(names[-MOST_CAMPAIGNS:]):
            folder = CampaignFolder(self.store, name)
            try:
                summary = _folder_summary(folder)
            except DamagedCampaign:
                # Others are shown; `steptime status ID` explains this one.
                continue
            if summary["done"] >= summary["processes"]:
                summary |= OVER
            elif trouble:
                # Slurm did not answer for an earlier campaign, so it is not asked again.
                summary["trouble"] = trouble
            else:
                summary |= _slurm_summary(folder)
                trouble = summary.get("trouble", "")
            summaries.append(summary)
        return summaries


def _folder_summary(folder: CampaignFolder) -> Summary:
    """What is known without Slurm."""
    facts = folder.facts()
    slots = {slot for array in folder.array_folders() for slot in folder.slots(array)}
    return {
        "campaign": folder.session,
        "name": facts["title"] or facts["name"],
        "started": facts["started"],
        "done": len(folder.results()),
        "processes": len(slots),
    }


def _slurm_summary(folder: CampaignFolder) -> Summary:
    """Without an answer, the rest may still wait or be lost."""
    try:
        return _progress_summary(read_progress(folder, Slurm(ANSWER_SECONDS)))
    except NoAnswer as problem:
        return {"trouble": str(problem)}


def _progress_summary(progress: Progress) -> Summary:
    processes = progress.processes
    node_types = list(dict.fromkeys(process.case.node_type for process in processes))
    names = _differing_settings([process.case for process in processes])
    failed = [process for process in processes if process.state == FAILED]
    return {
        **{state: progress.count(state) for state in STATES},
        "kinds": [{"name": name, **_count_states(processes, name)} for name in node_types],
        "causes": dict(progress.causes.most_common()),
        "failures": [_failure_summary(process, names) for process in failed[:MOST_FAILURES]],
        "seconds_left": progress.seconds_left,
        "basis": progress.basis,
        "is_over": progress.is_over,
    }


def _differing_settings(cases: list[Case]) -> list[str]:
    return [name for name in SETTINGS if len({getattr(case, name) for case in cases}) > 1]


def _count_states(processes: list[ProcessStatus], node_type: str) -> dict[str, int]:
    states = [process.state for process in processes if process.case.node_type == node_type]
    return {state: states.count(state) for state in STATES}


def _failure_summary(process: ProcessStatus, names: list[str]) -> Summary:
    case = process.case
    settings = [f"{name.replace('_', ' ')} {getattr(case, name)}" for name in names]
    return {
        "case": ", ".join(settings) or case.label,
        "cause": process.cause,
        "reason": process.reason,
    }
