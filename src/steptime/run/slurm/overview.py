"""All campaigns of a store at a glance, for whoever looks again and again: asks Slurm seldom and never waits long."""

from __future__ import annotations

import threading
import time
from typing import Any

from steptime.core.case import SETTINGS, Case
from steptime.run.slurm.client import NoAnswer, Slurm
from steptime.run.slurm.folder import CAMPAIGNS, CampaignFolder
from steptime.run.slurm.progress import FAILED, STATES, Place, Progress, progress
from steptime.store.folder import FolderStore

FRESH_SECONDS = 2.0
ANSWER_SECONDS = 5.0  # a page is not worth waiting longer for
MOST_CAMPAIGNS, MOST_FAILURES = 20, 20
Summary = dict[str, Any]
OVER: Summary = {
    "waiting": 0, "running": 0, "failed": 0, "kinds": [], "causes": {}, "failures": [], "seconds_left": 0.0,
    "basis": "", "is_over": True,
}  # fmt: skip


class Overview:
    """Newest first. Whoever asks while another does so is answered with the same."""

    def __init__(self, store: FolderStore) -> None:
        self.store = store
        self._busy, self._due, self._found = threading.Lock(), 0.0, list[Summary]()

    def __call__(self) -> list[Summary]:
        with self._busy:
            if time.monotonic() >= self._due:
                self._found = self._look()
                self._due = time.monotonic() + FRESH_SECONDS
            return self._found

    def _look(self) -> list[Summary]:
        names = sorted(
            path.parent.name for path in self.store.path.glob(f"{CAMPAIGNS}/*/campaign.json")
        )
        folders = [CampaignFolder(self.store, name) for name in reversed(names[-MOST_CAMPAIGNS:])]
        found, trouble = [], ""
        for folder in folders:
            summary = _known(folder)
            if summary["done"] >= summary["processes"]:
                summary |= OVER
            elif trouble:  # who was silent once is not asked for every campaign
                summary |= {"trouble": trouble}
            else:
                summary |= _asked(folder)
            trouble = summary.get("trouble", trouble)
            found.append(summary)
        return found


def _asked(folder: CampaignFolder) -> Summary:
    """Without Slurm nobody knows whether the rest still waits or was lost."""
    try:
        return _summary(progress(folder, Slurm(ANSWER_SECONDS)))
    except NoAnswer as problem:
        return {"trouble": str(problem)}


def _summary(found: Progress) -> Summary:
    kinds = list(dict.fromkeys(place.case.node_type for place in found.places))
    names = [
        name for name in SETTINGS if len({getattr(place.case, name) for place in found.places}) > 1
    ]
    failed = [place for place in found.places if place.state == FAILED]
    return {
        **{state: found.count(state) for state in STATES},
        "kinds": [{"name": kind, **_counts(found.places, kind)} for kind in kinds],
        "causes": dict(found.causes.most_common()),
        "failures": [_failure(place, names) for place in failed[:MOST_FAILURES]],
        "seconds_left": found.seconds_left,
        "basis": found.basis,
        "is_over": found.is_over,
    }


def _known(folder: CampaignFolder) -> Summary:
    facts, slots = (
        folder.facts(),
        {slot for array in folder.array_folders() for slot in folder.slots(array)},
    )
    told = {
        "campaign": folder.session,
        "name": facts["title"] or facts["name"],
        "started": facts["started"],
    }
    return {**told, "done": len(folder.results()), "processes": len(slots)}


def _counts(places: list[Place], kind: str) -> dict[str, int]:
    own = [place for place in places if place.case.node_type == kind]
    return {state: sum(place.state == state for place in own) for state in STATES}


def _failure(place: Place, names: list[str]) -> Summary:
    return {"case": _words(place.case, names), "cause": place.cause, "reason": place.reason}


def _words(case: Case, names: list[str]) -> str:
    return (
        ", ".join(f"{name.replace('_', ' ')} {getattr(case, name)}" for name in names) or case.label
    )
