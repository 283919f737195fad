"""What every file on the shelf `data.sets` must tell, and that the shelf of networks names them rightly."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from steptime import networks, plugins


@pytest.fixture(params=plugins.names("data.sets"))
def found(request: pytest.FixtureRequest) -> ModuleType:
    module = plugins.load("data.sets", request.param)
    assert module.SET.name == request.param
    return module


def test_a_set_tells_where_it_comes_from_and_how_it_is_prepared(found: ModuleType) -> None:
    assert found.SET.title and found.SET.address.startswith("https://") and found.SET.preparation
    assert found.SET.metric in ("accuracy", "perplexity") and callable(found.read)


def test_every_file_of_a_set_has_its_sum(found: ModuleType) -> None:
    sums = [one for editions in found.SET.files.values() for one in editions]
    assert sums and all(re.fullmatch("[0-9a-f]{64}", one) for one in sums)


def test_a_set_describes_itself_for_the_record(found: ModuleType) -> None:
    assert set(found.SET.describe()) == {"name", "title", "preparation"}


def test_networks_name_sets_of_the_shelf() -> None:
    named = {network.data for network in networks.catalogue().values()} - {""}
    assert named and named <= set(plugins.names("data.sets"))
