"""Download the files of a dataset. A file gets its name only after its content was verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Protocol

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.data.sets import VARIABLE, DataSet, NoSet, check_files, file_digest

# Without a single byte from the server.
TIMEOUT_SECONDS = 30.0
CHUNK_BYTES = 1 << 16
# A server that packs a file once more would change what is verified.
HEADERS = {"Accept-Encoding": "identity"}


class ProgressBar(Protocol):
    """What pooch calls while it downloads a file."""

    total: int

    def update(self, size: int) -> None: ...

    def reset(self) -> None: ...

    def close(self) -> None: ...


# Makes the bar of a file; None shows nothing.
ShowProgress = Callable[[str], ProgressBar | None]


class NotFetched(SteptimeError):
    """No address of a file gave what its authors published."""


def fetch(plugin: ModuleType, folder: Path, mirror: str, show: ShowProgress) -> list[Path]:
    """Download what is missing and return the new files. Existing files are never changed.

    `mirror` is the address of a folder with files of the same names; empty for the public ones."""
    data_set: DataSet = plugin.SET
    try:
        check_files(plugin, folder)
        return []
    except NoSet:
        files = [file for file in data_set.downloads if data_set.find(file, folder) is None]
    if not files:
        # Another file is missing, which no address offers.
        check_files(plugin, folder)
    try:
        _import_pooch()
        new_files = _fetch_files(plugin, files, folder, mirror, show)
    except NotInstalled as problem:
        raise NotInstalled("\n".join((str(problem), *instructions(data_set, folder)))) from None
    except OSError as problem:
        target = problem.filename or folder.absolute()
        raise SteptimeError(
            f"{target} cannot be written: {problem.strerror}. "
            f"Name another folder with --data or ${VARIABLE}."
        ) from None
    check_files(plugin, folder)
    return new_files


def _fetch_files(
    plugin: ModuleType, files: Sequence[str], folder: Path, mirror: str, show: ShowProgress
) -> list[Path]:
    data_set: DataSet = plugin.SET
    new_files = []
    target_folder = folder / data_set.name
    folder.mkdir(parents=True, exist_ok=True)
    # In the same folder, so that a finished file only needs another name.
    with TemporaryDirectory(prefix=".fetch-", dir=folder) as drafts:
        for file in files:
            addresses = data_set.downloads[file]
            if mirror:
                addresses = (f"{mirror.rstrip('/')}/{file}",)
            problems = []
            for number, address in enumerate(addresses):
                # Each in a folder of its own: digests are remembered by path.
                draft = Path(drafts) / str(number) / file
                draft.parent.mkdir(exist_ok=True)
                problem = _download(address, draft, show(file)) or _problem(plugin, draft)
                if not problem:
                    target_folder.mkdir(exist_ok=True)
                    new_files.append(draft.replace(target_folder / file))
                    break
                problems.append(f"  {address}: {problem}")
            else:
                raise NotFetched(_failure(data_set, problems, folder))
    return new_files


def _download(address: str, path: Path, bar: ProgressBar | None) -> str:
    """Why it failed; empty if it did not."""
    requests, downloader_type = _import_pooch()
    downloader = downloader_type(
        progressbar=bar or False,
        chunk_size=CHUNK_BYTES,
        timeout=TIMEOUT_SECONDS,
        headers=HEADERS,
    )
    try:
        downloader(address, str(path), None)
    except requests.HTTPError as problem:
        return f"the server answers {problem.response.status_code} {problem.response.reason}"
    except requests.RequestException as problem:
        return _first_cause(problem)
    finally:
        if bar is not None:
            bar.close()
    return ""


def _first_cause(problem: BaseException) -> str:
    """What the system said, under several layers of libraries."""
    while cause := problem.__cause__ or problem.__context__:
        problem = cause
    if isinstance(problem, TimeoutError):
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    return getattr(problem, "strerror", None) or str(problem)


def _problem(plugin: ModuleType, path: Path) -> str:
    """How a file differs from what its authors published; empty if it does not."""
    digests = plugin.SET.files.get(path.name)
    if digests:
        digest = file_digest(path)
        return "" if digest in digests else f"another content, with the SHA-256 {digest}"
    try:
        # An archive is verified by its content.
        check_files(plugin, path.parent)
    except SteptimeError:
        return "not the archive that its authors published"
    return ""


def _failure(data_set: DataSet, problems: Sequence[str], folder: Path) -> str:
    title = f"{data_set.title} cannot be fetched:"
    return "\n".join((title, *problems, *instructions(data_set, folder)))


def instructions(data_set: DataSet, folder: Path) -> list[str]:
    """What to do without internet: which files, where to place them, and their checksums."""
    target = folder.absolute() / data_set.name
    lines = [
        f"Without internet, download these on another machine and copy them into {target}, "
        f"or into a folder that --data or ${VARIABLE} names:"
    ]
    for file, addresses in data_set.downloads.items():
        if data_set.find(file, folder) is not None:
            continue
        lines.append(f"  {addresses[0]}")
        digests = data_set.files.get(file)
        if digests:
            lines.append(f"    SHA-256 {digests[0]}")
            continue
        # Of an archive only the digests of its content are known.
        for name, content_digests in data_set.files.items():
            lines.append(f"    {name} in it: SHA-256 {content_digests[0]}")
    return lines


def _import_pooch() -> tuple[Any, Any]:
    try:
        import requests
        from pooch import HTTPDownloader
    except ImportError:
        raise NotInstalled("Fetching needs the data extra: pip install 'steptime[data]'") from None
    return requests, HTTPDownloader
