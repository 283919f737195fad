"""What storage a folder lies on: memory, NVMe, SSD, a hard disk, or the network."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

MEMORY = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs",
    "panfs", "wekafs", "afs", "orangefs", "pvfs2", "ocfs2", "gfs2", "9p", "virtiofs", "daos",
    "fuse.sshfs", "fuse.glusterfs", "fuse.juicefs", "fuse.ceph", "fuse.s3fs", "fuse.rclone",
    "fuse.gcsfuse", "fuse.beegfs", "fuse.moosefs", "fuse.seaweedfs",
)  # fmt: skip
KINDS = ("dram", "nvme", "ssd", "disk", "network", "unknown")
ROTATIONAL_KINDS = {0: "ssd", 1: "disk", None: "unknown"}
# Devices may lie on top of each other: partitions, mapped devices, loops.
MOST_LAYERS = 8


class Mount(NamedTuple):
    point: str
    device: str  # major:minor
    file_system: str  # ext4, tmpfs, …
    source: str
    options: str


def describe(folder: Path | str, root: Path = Path("/")) -> dict[str, Any]:
    """`kind` is one of KINDS. What the system does not report is left out."""
    mount = _find_mount(os.path.realpath(folder), root)
    if mount is None:
        return {"kind": "unknown"}
    facts = _storage_facts(mount, root)
    return {**facts, "file_system": mount.file_system}


def _storage_facts(mount: Mount, root: Path) -> dict[str, Any]:
    if mount.file_system in MEMORY:
        return {"kind": "dram"}
    if mount.file_system in NETWORK:
        return {"kind": "network"}
    upper = re.search(r"upperdir=([^,]+)", mount.options)
    if mount.file_system == "overlay" and upper:
        # An overlay writes into this folder. Inside a container it cannot be seen.
        below = _find_mount(upper[1], root)
        if below is None or below.file_system == "overlay":
            return {"kind": "unknown"}
        return _block_device_facts(below, root)
    return _block_device_facts(mount, root)


def _find_mount(path: str, root: Path) -> Mount | None:
    """The deepest mount above the path. The last mount at a point hides the earlier ones."""
    deepest = None
    for mount in _list_mounts(root):
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (deepest is None or len(mount.point) >= len(deepest.point)):
            deepest = mount
    return deepest


def _list_mounts(root: Path) -> list[Mount]:
    """Lines of proc(5): id, parent, device, root, point, options, optional fields, a dash,
    file system, source, options."""
    with suppress(OSError, ValueError, IndexError):
        text = (root / "proc/self/mountinfo").read_text()
        return [_parse_mount(line) for line in text.splitlines()]
    return []


def _parse_mount(line: str) -> Mount:
    before_dash, after_dash = line.split(" - ", 1)
    fields = before_dash.split()
    file_system, source, *options = after_dash.split()
    # Blanks and other special characters in the path are written as octal numbers.
    point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
    return Mount(point, fields[2], file_system, source, ",".join(options))


def _block_device_facts(mount: Mount, root: Path) -> dict[str, Any]:
    folder = _device_folder(mount, root)
    if folder is None:
        return {"kind": "unknown"}
    for _ in range(MOST_LAYERS):
        below = _folder_below(folder, root)
        if below is None:
            break
        folder = below
    rotational = _read_number(folder / "queue" / "rotational")
    facts: dict[str, Any] = {
        "kind": _device_kind(folder.name, rotational),
        "device": folder.name,
    }
    if rotational is not None:
        facts["rotational"] = bool(rotational)
    # A virtual disk reports whatever its maker chose. The guest cannot see what is below it.
    if re.match(r"vd|xvd", folder.name):
        facts["virtual"] = True
    return facts


def _device_kind(name: str, rotational: int | None) -> str:
    if re.match(r"z?ram", name):
        return "dram"
    if name.startswith("nvme"):
        return "nvme"
    return ROTATIONAL_KINDS[rotational]


def _device_folder(mount: Mount, root: Path) -> Path | None:
    """By device number. Some file systems invent one; then by the name of the source."""
    source = os.path.basename(os.path.realpath(mount.source))
    candidates = (root / "sys/dev/block" / mount.device, root / "sys/class/block" / source)
    for path in candidates:
        if path.exists():
            return Path(os.path.realpath(path))
    return None


def _folder_below(folder: Path, root: Path) -> Path | None:
    """The disk of a partition, the first slave of a mapped device, the disk of a loop's file."""
    if (folder / "partition").exists():
        return folder.parent
    # ValueError: the folder of slaves is empty.
    with suppress(OSError, ValueError):
        return Path(os.path.realpath(min((folder / "slaves").iterdir())))
    with suppress(OSError):
        backing_file = (folder / "loop" / "backing_file").read_text().strip()
        mount = _find_mount(backing_file, root)
        return _device_folder(mount, root) if mount else None
    return None


def _read_number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None
