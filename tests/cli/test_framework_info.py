"""What a framework's folder says about itself."""

from __future__ import annotations

from steptime.cli.framework_info import frameworks, read_info


def test_read_info_describes_a_framework_from_its_source() -> None:
    plug_in = read_info("pytorch")
    assert plug_in.packages == {"torch"}
    assert plug_in.title.startswith("PyTorch") and "install" in plug_in.install


def test_numpy_needs_no_other_package() -> None:
    assert read_info("numpy").packages == frozenset()
    assert next(entry for entry in frameworks() if entry["name"] == "numpy")["installed"] == "yes"


def test_read_info_of_a_missing_source_is_empty() -> None:
    assert read_info("not_there").title == ""
