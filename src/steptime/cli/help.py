"""`steptime --help` with the commands under headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

GROUPS: Mapping[str, Sequence[str]] = {
    "Measure": ("run", "compare", "scaling", "profile", "certify", "train", "machine"),
    "Look at results": ("list", "show", "chart", "report", "export", "guide"),
    "Cluster": ("submit", "status", "collect", "cancel"),
    "Store": ("import", "store"),
}
"""Every command once, in the order of `--help`."""


class GroupedHelp(TyperGroup):
    """Lists the commands by group.

    Typer's own headings need Rich markup, which doubles the time that help takes."""

    # Typer moved these two classes between releases, hence Any.
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(len(name) for name in self.commands)
        # Click indents by two and separates by two, with two to spare.
        limit = formatter.width - longest - 6
        for heading, names in GROUPS.items():
            rows = []
            for name in names:
                summary = self.commands[name].get_short_help_str(limit)
                # Padded, so that the summaries of all groups start in one column.
                rows.append((name.ljust(longest), summary))
            with formatter.section(heading):
                formatter.write_dl(rows)
