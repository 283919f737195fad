"""Convert a store of format 1 into a new one of the current format.

The old store is only read. A conversion that was interrupted is completed by running it again;
a second one changes nothing."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from steptime.core.errors import SteptimeError
from steptime.store import imports, journals, machines, parts
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import MISNAMED, Blobs
from steptime.store.files import read_bytes
from steptime.store.folder import MARK, FolderStore, read_format
from steptime.store.journal import is_running
from steptime.store.reader import has_ended
from steptime.store.versions import FORMAT, JOURNAL_SCHEMA

# What the version before this one wrote.
OLD_FORMAT = 1
OLD_SCHEMA = "steptime/1"
OLD_PART_SCHEMA = "steptime-part/1"


class Rename(NamedTuple):
    """Rename a key of the objects at a path; `*` in the path stands for any key or item."""

    path: tuple[str, ...]
    old: str
    new: str


class NewValue(NamedTuple):
    """Replace one value of a key of the objects at a path."""

    path: tuple[str, ...]
    key: str
    old: str
    new: str


# Every key that changed between the formats, by the document that holds it. Journal lines go by
# their name. The renames of a document are applied in this order.
RENAMES: dict[str, tuple[Rename, ...]] = {
    "begin": (Rename(("protocol",), "profile", "preset"),),
    "end": (
        Rename(("findings",), "waiting", "pause_cost"),
        Rename(("findings", "data", "page_cache"), "asked", "requested"),
        Rename(("findings", "data", "page_cache"), "found", "observed"),
    ),
    "import": (Rename((), "place", "location"),),
    "machine": (Rename((), "roofs", "peaks"), Rename(("peaks", "*"), "roofs", "peaks")),
}

# Every word that changed as a value, after the keys.
NEW_VALUES: dict[str, tuple[NewValue, ...]] = {
    "end": (
        NewValue(("findings", "data", "page_cache"), "observed", "partly", "partial"),
        NewValue(("findings", "data", "page_cache"), "observed", "not told", "unknown"),
    ),
}


@dataclass
class ConversionReport:
    """Counts by what was counted: journals, parts, blobs, imports, machines, references."""

    converted: Counter[str] = field(default_factory=Counter)
    # In the new store before.
    present: Counter[str] = field(default_factory=Counter)
    # Not converted, by the reason.
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def count(self, name: str, *, changed: bool) -> None:
        counts = self.converted if changed else self.present
        counts[name] += 1


def convert(old: Path, new: Path) -> ConversionReport:
    """Write what the old store holds into the new one."""
    _check_formats(old, new)
    store = FolderStore(new)
    report = ConversionReport()
    advice = "What was converted is kept; make room and convert again."
    with explain_write_errors(f"The store {new}", advice):
        store.make()
        known_ids = _ids_in_parts(store, report)
        _convert_journals(old, new, known_ids, report)
        _convert_parts(old, store, known_ids, report)
        _copy_blobs(Blobs(old), Blobs(new), report)
        _convert_files(old, new, imports.PATTERN, _convert_rows, report)
        _convert_files(old, new, machines.PATTERN, _convert_machine, report)
        _convert_files(old, new, "references/*", bytes, report)
    # A campaign holds jobs that the old version has to finish, so it stays where it is.
    for _ in old.glob("campaigns/*"):
        report.left["campaigns"] += 1
    return report


def _ids_in_parts(store: FolderStore, report: ConversionReport) -> set[str]:
    identifiers: set[str] = set()
    for path in store.parts.paths():
        try:
            identifiers |= parts.ids(path)
        except parts.DamagedPart as problem:
            report.problems.append(str(problem))
    return identifiers


def _check_formats(old: Path, new: Path) -> None:
    for folder in (old, new):
        # `Path` has made one slash of two.
        if folder.parts[:1] in (("postgresql:",), ("postgres:",)):
            raise SteptimeError(
                f"{folder} is a database: convert the folder and push it to a new database."
            )
    old_format = read_format(old)
    if old_format is None:
        raise SteptimeError(f"{old} is no store: it has no {MARK}.")
    if old_format == FORMAT:
        raise SteptimeError(f"The store {old} has format {FORMAT} already: use it as it is.")
    if old_format != OLD_FORMAT:
        raise SteptimeError(
            f"The store {old} has format {old_format}; only format {OLD_FORMAT} can be converted."
        )
    source, target = old.resolve(), new.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise SteptimeError(f"{new} is not beside {old}. Name another folder for the new store.")


def _convert_journals(old: Path, new: Path, known_ids: set[str], report: ConversionReport) -> None:
    for path in journals.paths(old):
        if path.stem in known_ids:
            report.count("journals", changed=False)
            continue
        # Its end is not written yet. Convert again when it has ended.
        if is_running(path):
            report.left["running"] += 1
            continue
        content = _read(path, report)
        if content is None:
            continue
        target = new / path.relative_to(old)
        # A complete journal stays, whatever has become of the old one since.
        changed = not has_ended(target)
        if changed:
            content = convert_journal(content)
            # The log first: a journal that is here needs no second conversion.
            log = path.with_suffix(".log")
            if log.exists():
                _write(target.with_suffix(".log"), read_bytes(log), log)
            _write(target, content, path)
        report.count("journals", changed=changed)


def _convert_parts(
    old: Path, store: FolderStore, known_ids: set[str], report: ConversionReport
) -> None:
    for path in parts.Parts(old / "parts").paths():
        try:
            old_texts = parts.texts(path, schema=OLD_PART_SCHEMA)
        except parts.DamagedPart as problem:
            report.problems.append(str(problem))
            continue
        texts = {}
        for identifier, text in old_texts.items():
            if identifier not in known_ids:
                texts[identifier] = convert_journal(text.encode()).decode()
        stored = list(parts.stored_journals(path, texts, report.problems))
        if stored:
            day = path.name.partition(".")[0]
            parts.write(store.parts.folder, day, stored)
        report.count("parts", changed=bool(stored))


def _copy_blobs(old: Blobs, new: Blobs, report: ConversionReport) -> None:
    for name in old.names():
        is_new = not new.is_intact(name)
        if is_new and not old.is_intact(name):
            report.problems.append(f"{old.path(name)}: {MISNAMED}; it is not taken.")
            continue
        if is_new:
            new.put(old.path(name))
        report.count("blobs", changed=is_new)


def _convert_files(
    old: Path,
    new: Path,
    pattern: str,
    convert_content: Callable[[bytes], bytes],
    report: ConversionReport,
) -> None:
    """Files that are in the new store already stay: they may be newer."""
    for path in sorted(old.glob(pattern)):
        if path.name.startswith("."):
            continue
        target = new / path.relative_to(old)
        is_new = not target.exists()
        if is_new:
            content = _read(path, report)
            if content is None:
                continue
            try:
                _write(target, convert_content(content), path)
            except (ValueError, RecursionError):
                report.problems.append(f"{path}: not readable; it is not taken.")
                continue
        report.count(path.parent.name, changed=is_new)


def _read(path: Path, report: ConversionReport) -> bytes | None:
    """The content; None, with a problem in the report, if the file cannot be read."""
    try:
        return read_bytes(path)
    except OSError as problem:
        report.problems.append(f"{path}: not readable ({problem.strerror}); it is not taken.")
        return None


def _write(target: Path, content: bytes, source: Path) -> None:
    """The time of the source stays: the newest peaks are found by it."""
    with atomic_write(target) as draft:
        draft.write_bytes(content)
        shutil.copystat(source, draft)


def convert_journal(content: bytes) -> bytes:
    """A journal of the old schema in the current one, line by line."""
    lines = [_convert_line(line) for line in content.split(b"\n")]
    return b"\n".join(lines)


def _convert_line(line: bytes) -> bytes:
    """A torn or damaged line stays as it is, and so does one in which nothing changes."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(document, dict):
        return line
    name = str(document.get("line"))
    converted = convert_document(document, name)
    if name == "begin" and converted.get("schema") == OLD_SCHEMA:
        converted["schema"] = JOURNAL_SCHEMA
    return line if converted == document else _dump(converted)


def _convert_rows(content: bytes) -> bytes:
    lines = []
    for line in content.split(b"\n"):
        try:
            lines.append(_dump(convert_document(json.loads(line), "import")))
        except (ValueError, RecursionError):
            # The end of the file, or a damaged line, which the reader reports.
            lines.append(line)
    return b"\n".join(lines)


def _convert_machine(content: bytes) -> bytes:
    document = convert_document(json.loads(content), "machine")
    return json.dumps(document, indent=2).encode()


def _dump(document: Any) -> bytes:
    """As the writers of journals and imports do."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")


def convert_document(document: Any, name: str) -> Any:
    """A document of this name with its new keys and values; the order of the keys stays."""
    for rename in RENAMES.get(name, ()):
        document = apply_rename(document, rename)
    for value in NEW_VALUES.get(name, ()):
        document = _change_at(document, value.path, partial(_replace_value, value))
    return document


def apply_rename(document: Any, rename: Rename) -> Any:
    return _change_at(document, rename.path, partial(_rename_key, rename))


def _change_at(value: Any, path: tuple[str, ...], change: Callable[[Any], Any]) -> Any:
    """Apply the change to every object at the path."""
    if not path:
        return change(value) if isinstance(value, dict) else value
    name, rest = path[0], path[1:]
    if isinstance(value, list) and name == "*":
        return [_change_at(item, rest, change) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, item in value.items():
        is_on_path = name in ("*", key)
        changed[key] = _change_at(item, rest, change) if is_on_path else item
    return changed


def _rename_key(rename: Rename, values: dict[str, Any]) -> dict[str, Any]:
    renamed = {}
    for key, item in values.items():
        renamed[rename.new if key == rename.old else key] = item
    return renamed


def _replace_value(value: NewValue, values: dict[str, Any]) -> dict[str, Any]:
    if values.get(value.key) != value.old:
        return values
    return {**values, value.key: value.new}
