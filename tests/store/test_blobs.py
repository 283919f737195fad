from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steptime.core.errors import SteptimeError
from steptime.store.atomic import NotWritten
from steptime.store.blobs import Blobs


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=100))
def test_put_and_get_use_the_hash_as_name(blobs: Blobs, content: bytes) -> None:
    name = blobs.put(content)
    assert (name, blobs.get(name)) == (hashlib.sha256(content).hexdigest(), content)
    assert blobs.path(name) == blobs.folder / name[:2] / name


def test_put_takes_a_file_like_its_bytes(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(b"x" * 3_000_000)
    assert blobs.put(tmp_path / "trace") == blobs.put(b"x" * 3_000_000)
    assert len(list(blobs.names())) == 1


def test_put_again_writes_nothing(blobs: Blobs) -> None:
    name = blobs.put(b"a")
    before = blobs.path(name).stat()
    assert blobs.put(b"a") == name and blobs.path(name).stat() == before


def test_put_again_repairs_a_damaged_blob(blobs: Blobs) -> None:
    name = blobs.put(b"right")
    blobs.path(name).write_bytes(b"wrong")
    (told,) = blobs.check()
    assert name in told
    blobs.put(b"right")
    assert blobs.check() == []


def test_names_leave_out_drafts(blobs: Blobs) -> None:
    name = blobs.put(b"a")
    blobs.path(name).with_name(f".{name}.7.draft").write_bytes(b"half")
    assert list(blobs.names()) == [name] and blobs.check() == []


def test_get_of_a_missing_blob_is_one_sentence(blobs: Blobs) -> None:
    with pytest.raises(SteptimeError, match="No such file"):
        blobs.get("0" * 64)


def test_put_explains_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("in the way")
    with pytest.raises(NotWritten, match="--store"):
        Blobs(tmp_path).put(b"a")
