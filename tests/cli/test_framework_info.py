"""What a framework's folder says about itself."""

from __future__ import annotations

from steptime.cli.framework_info import frameworks, read


def test_a_framework_is_described_from_its_source() -> None:
    plug_in = read("pytorch")
    assert plug_in.needs == {"torch"}
    assert plug_in.title.startswith("PyTorch") and "install" in plug_in.install


def test_the_reference_needs_nothing_more() -> None:
    assert read("numpy").needs == frozenset()
    assert next(entry for entry in frameworks() if entry["name"] == "numpy")["installed"] == "yes"


def test_what_has_no_source_is_listed_with_nothing_to_say() -> None:
    assert read("not_there").title == ""
