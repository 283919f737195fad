from __future__ import annotations

from pathlib import Path

import pytest

from steptime.data.tiers import KINDS, describe


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/class/block").mkdir(parents=True)
    return tmp_path


def mount(
    root: Path,
    point: str,
    kind: str,
    device: str = "0:99",
    source: str = "none",
    options: str = "rw",
) -> None:
    with (root / "proc/self/mountinfo").open("a") as file:
        file.write(f"22 1 {device} / {point} rw,relatime shared:1 - {kind} {source} {options}\n")


def block(
    root: Path, number: str, name: str, rotational: int | None = 0, *, below: str = ""
) -> Path:
    folder = root / "sys/block" / below / name
    (folder / "queue").mkdir(parents=True)
    if rotational is not None:
        (folder / "queue/rotational").write_text(f"{rotational}\n")
    (root / "sys/dev/block" / number).symlink_to(folder)
    (root / "sys/class/block" / name).symlink_to(folder)
    return folder


@pytest.mark.parametrize(
    "kind, expected",
    [("tmpfs", "dram"), ("nfs4", "network"), ("lustre", "network"), ("fuse.sshfs", "network")],
)
def test_describe_knows_memory_and_network_file_systems(
    root: Path, kind: str, expected: str
) -> None:
    mount(root, "/", "ext4", "8:1")
    mount(root, "/data", kind)
    assert describe("/data/set", root) == {"kind": expected, "file_system": kind}


@pytest.mark.parametrize(
    "name, rotational, expected",
    [("sda", 1, "disk"), ("sdb", 0, "ssd"), ("nvme0n1", 0, "nvme"), ("sdc", None, "unknown")],
)
def test_describe_follows_partition_to_disk(
    root: Path, name: str, rotational: int | None, expected: str
) -> None:
    block(root, "8:0", name, rotational)
    block(root, "8:1", f"{name}1", None, below=name).joinpath("partition").write_text("1")
    mount(root, "/data", "xfs", "8:1")
    facts = describe("/data", root)
    assert (facts["kind"], facts["device"], facts["file_system"]) == (expected, name, "xfs")


def test_describe_follows_mapped_device(root: Path) -> None:
    block(root, "259:0", "nvme0n1")
    mapped = block(root, "253:0", "dm-0")
    (mapped / "slaves").mkdir()
    (mapped / "slaves/nvme0n1").symlink_to(root / "sys/block/nvme0n1")
    mount(root, "/", "ext4", "253:0")
    assert describe("/data", root)["kind"] == "nvme"


def test_describe_follows_loop_device(root: Path) -> None:
    block(root, "8:0", "sda", 1)
    (block(root, "7:0", "loop0") / "loop").mkdir()
    (root / "sys/block/loop0/loop/backing_file").write_text("/images/one.img\n")
    mount(root, "/", "ext4", "8:0")
    mount(root, "/data", "squashfs", "7:0")
    assert describe("/data", root) == {
        "kind": "disk",
        "device": "sda",
        "rotational": True,
        "file_system": "squashfs",
    }


def test_describe_falls_back_to_device_name(root: Path) -> None:
    block(root, "8:0", "sda", 0)
    mount(root, "/data", "btrfs", "0:41", "/dev/sda")
    assert describe("/data", root)["kind"] == "ssd"


def test_describe_marks_virtual_disk(root: Path) -> None:
    block(root, "254:0", "vda", 1)
    mount(root, "/", "ext4", "254:0")
    assert describe("/", root) == {
        "kind": "disk", "device": "vda", "rotational": True, "virtual": True, "file_system": "ext4",
    }  # fmt: skip


def test_describe_follows_overlay_to_upper_folder(root: Path) -> None:
    block(root, "8:0", "sda", 0)
    mount(root, "/images", "ext4", "8:0")
    mount(root, "/data", "overlay", options="rw,lowerdir=/a,upperdir=/images/upper,workdir=/w")
    mount(root, "/seen", "overlay", options="rw,lowerdir=/a,upperdir=/hidden/upper,workdir=/w")
    assert describe("/data", root)["kind"] == "ssd"
    assert describe("/seen", root) == {"kind": "unknown", "file_system": "overlay"}


def test_describe_uses_deepest_and_last_mount(root: Path) -> None:
    mount(root, "/", "ext4")
    mount(root, "/data", "ext4")
    mount(root, "/data", "tmpfs")
    mount(root, "/my\\040data", "nfs")
    assert (
        describe("/data", root)["kind"] == "dram"
        and describe("/my data/x", root)["kind"] == "network"
    )
    assert describe("/database", root)["file_system"] == "ext4"


def test_describe_is_unknown_without_mount_table(tmp_path: Path) -> None:
    assert describe("/data", tmp_path) == {"kind": "unknown"}


def test_describe_finds_memory_of_this_machine() -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("this machine has no /dev/shm")
    assert describe("/dev/shm")["kind"] == "dram" and describe(Path.cwd())["kind"] in KINDS
