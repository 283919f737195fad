"""Which data sets are here and intact, and which networks learn from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime import networks, plugins
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.data.sets import DataSet

HERE = "here"
MISSING = "missing"
# A checksum is wrong, or a package that reads it is missing.
UNUSABLE = "unusable"


def data_sets(folder: Path) -> list[dict[str, Any]]:
    from steptime.data.sets import NoSet, check_files

    entries = []
    for name in plugins.names("data.sets"):
        plugin = plugins.load("data.sets", name)
        state, problem = HERE, ""
        try:
            check_files(plugin, folder)
        except NoSet as absence:
            state, problem = MISSING, str(absence)
        except SteptimeError as defect:
            state, problem = UNUSABLE, str(defect)
        entries.append(
            {
                "name": name,
                "title": plugin.SET.title,
                "state": state,
                "where": _location(plugin.SET, folder),
                "networks": _networks(name),
                "problem": problem,
            }
        )
    return entries


def _location(data_set: DataSet, folder: Path) -> str:
    """The folder of the first of its files; empty if none is here."""
    for file in (*data_set.files, *data_set.other_forms):
        path = data_set.find(file, folder)
        if path is not None:
            return str(path.parent.absolute())
    return ""


def _networks(data_set: str) -> list[str]:
    all_networks = networks.catalogue().values()
    return [network.name for network in all_networks if network.data == data_set]
