"""What a folder lies on, as the system tells it: memory, NVMe, SSD, a turning disk, or somebody else's machine."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

MEMORY = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "panfs", "wekafs", "afs",
    "orangefs", "pvfs2", "ocfs2", "gfs2", "9p", "virtiofs", "daos", "fuse.sshfs", "fuse.glusterfs", "fuse.juicefs",
    "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.beegfs", "fuse.moosefs", "fuse.seaweedfs",
)  # fmt: skip
KINDS = ("dram", "nvme", "ssd", "disk", "network", "unknown")
DEEPEST = 8  # layers that lie on each other: partitions, mapped devices, loops


class Mount(NamedTuple):
    point: str
    device: str  # major:minor
    kind: str  # ext4, tmpfs, …
    source: str
    options: str


def describe(folder: Path | str, root: Path = Path("/")) -> dict[str, Any]:
    """`kind` is one of KINDS; what the system does not tell is not here."""
    mount = _mount(os.path.realpath(folder), root)
    if mount is None:
        return {"kind": "unknown"}
    told = {"file_system": mount.kind}
    if mount.kind in MEMORY:
        return {"kind": "dram", **told}
    if mount.kind in NETWORK:
        return {"kind": "network", **told}
    upper = re.search(r"upperdir=([^,]+)", mount.options)
    if mount.kind == "overlay" and upper:
        below = _mount(
            upper[1], root
        )  # where what is written here really goes; a container does not see it
        return (
            {**_block(below, root), **told}
            if below and below.kind != "overlay"
            else {"kind": "unknown", **told}
        )
    return {**_block(mount, root), **told}


def _mount(path: str, root: Path) -> Mount | None:
    """The deepest above the path; of several at one point the last, which covers the others."""
    found = None
    for mount in _mounts(root):
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _mounts(root: Path) -> list[Mount]:
    """Lines of proc(5): id, parent, device, root, point, options, optional words, a dash, kind, source, options."""
    with suppress(OSError, ValueError, IndexError):
        found = []
        for line in (root / "proc/self/mountinfo").read_text().splitlines():
            first, last = (part.split() for part in line.split(" - ", 1))
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), first[4])
            found.append(Mount(point, first[2], last[0], last[1], ",".join(last[2:])))
        return found
    return []


def _block(mount: Mount, root: Path) -> dict[str, Any]:
    folder = _device(mount, root)
    for _ in range(DEEPEST):
        if folder is None or not (below := _below(folder, root)):
            break
        folder = below
    if folder is None:
        return {"kind": "unknown"}
    rotational = _number(folder / "queue" / "rotational")
    kind = (
        "nvme"
        if folder.name.startswith("nvme")
        else {0: "ssd", 1: "disk", None: "unknown"}[rotational]
    )
    told = {} if rotational is None else {"rotational": bool(rotational)}
    # A virtual disk turns or does not as its maker says: what is below it, the guest cannot see.
    virtual = {"virtual": True} if re.match(r"vd|xvd", folder.name) else {}
    return {
        "kind": "dram" if re.match(r"z?ram", folder.name) else kind,
        "device": folder.name,
        **told,
        **virtual,
    }


def _device(mount: Mount, root: Path) -> Path | None:
    """Some file systems make up a device number of their own; then the name of what was mounted tells."""
    named = root / "sys/class/block" / os.path.basename(os.path.realpath(mount.source))
    numbered = root / "sys/dev/block" / mount.device
    return next((Path(os.path.realpath(path)) for path in (numbered, named) if path.exists()), None)


def _below(folder: Path, root: Path) -> Path | None:
    """A partition lies on its disk, a mapped device on the first of its slaves, a loop on its file's device."""
    if (folder / "partition").exists():
        return folder.parent
    with suppress(OSError, ValueError):  # a folder of none
        return Path(os.path.realpath(min((folder / "slaves").iterdir())))
    with suppress(OSError):
        mount = _mount((folder / "loop" / "backing_file").read_text().strip(), root)
        return _device(mount, root) if mount else None
    return None


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None
