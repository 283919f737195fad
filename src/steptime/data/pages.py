"""The page cache: which of a file's pages lie in memory, and how to let go of them. Asks the kernel itself."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

COLD, WARM = 0.05, 0.95
"""Shares of pages in memory, up to which a file is cold and from which on it is warm."""


FOLIO_BYTES = 1 << 21
"""The kernel keeps pages in bundles of up to this size and lets go of whole ones only: of a bundle that two ranges
share nothing goes before the second range is done, so that a range begins with its bundle."""


def word(share: float | None) -> str:
    if share is None:
        return "not told"
    return "cold" if share <= COLD else "warm" if share >= WARM else "partly"


def resident_share(files: Iterable[int]) -> float | None:
    """Of all pages of these open files. None: the kernel does not tell, or there is nothing to tell of."""
    found = [_resident(file) for file in files if os.fstat(file).st_size]
    if not found or any(pages is None for pages in found):
        return None
    return float(np.concatenate([pages for pages in found if pages is not None]).mean())


def warm(file: int) -> None:
    for first in range(0, os.fstat(file).st_size, FOLIO_BYTES):
        os.pread(file, FOLIO_BYTES, first)


def drop(file: int, first: int = 0, length: int = 0) -> bool:
    """Asks to let go of the pages from `first` on, all if no length is told; they must be on the disk. Below it, in a
    hypervisor or a disk, they may well be kept: cold means cold to this system. False: it refused."""
    begin = first - first % FOLIO_BYTES
    try:
        os.posix_fadvise(
            file, begin, length + first - begin if length else 0, os.POSIX_FADV_DONTNEED
        )
    except OSError:
        return False
    return True


def _resident(file: int) -> NDArray[np.bool_] | None:
    """mincore(2) of a mapping that nobody touches. A bit for each page; the others of its byte mean nothing."""
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    system.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    size = os.fstat(file).st_size
    place = system.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    if place in (None, ctypes.c_void_p(-1).value):
        return None
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    answered = system.mincore(place, size, pages) == 0
    system.munmap(place, size)
    return (np.frombuffer(bytes(pages), np.uint8) & 1).astype(np.bool_) if answered else None
