"""The page cache: which pages of a file are in memory, and how to drop them.

Calls the kernel directly."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# Shares of resident pages: a file is cold up to the first and warm from the second on.
COLD_SHARE, WARM_SHARE = 0.05, 0.95

# The kernel caches pages in folios of up to this size and drops only complete ones. A folio that
# two ranges share is dropped only if a range includes all of it. So a range is extended to the
# beginning of its first folio.
FOLIO_BYTES = 1 << 21


def cache_state(share: float | None) -> str:
    if share is None:
        return "unknown"
    if share <= COLD_SHARE:
        return "cold"
    return "warm" if share >= WARM_SHARE else "partial"


def resident_share(files: Iterable[int]) -> float | None:
    """Of all pages of these open files. None: the kernel does not tell, or all are empty."""
    resident = []
    for file in files:
        if not os.fstat(file).st_size:
            continue
        pages = _resident_pages(file)
        if pages is None:
            return None
        resident.append(pages)
    if not resident:
        return None
    return float(np.concatenate(resident).mean())


def warm(file: int) -> None:
    for first in range(0, os.fstat(file).st_size, FOLIO_BYTES):
        os.pread(file, FOLIO_BYTES, first)


def drop(file: int, first: int = 0, length: int = 0) -> bool:
    """Drop the cached pages from `first` on, all of them if the length is 0. False: refused.

    The pages must be on the disk. A hypervisor or the disk itself may still cache them: cold
    means cold to this operating system."""
    begin = first - first % FOLIO_BYTES
    extended_length = length + first - begin if length else 0
    try:
        os.posix_fadvise(file, begin, extended_length, os.POSIX_FADV_DONTNEED)
    except OSError:
        return False
    return True


def _resident_pages(file: int) -> NDArray[np.bool_] | None:
    """Ask mincore(2) about a mapping that is never touched."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    size = os.fstat(file).st_size
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    map_failed = ctypes.c_void_p(-1).value
    if address in (None, map_failed):
        return None
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    succeeded = libc.mincore(address, size, pages) == 0
    libc.munmap(address, size)
    if not succeeded:
        return None
    # Only the lowest bit of each byte has a meaning.
    return (np.frombuffer(bytes(pages), np.uint8) & 1).astype(np.bool_)
