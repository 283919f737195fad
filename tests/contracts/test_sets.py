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


def test_dataset_names_source_and_preparation(found: ModuleType) -> None:
    assert found.SET.title and found.SET.address.startswith("https://") and found.SET.preparation
    assert found.SET.metric in ("accuracy", "perplexity") and callable(found.read)


def test_dataset_files_have_digests(found: ModuleType) -> None:
    sums = [one for editions in found.SET.files.values() for one in editions]
    assert sums and all(re.fullmatch("[0-9a-f]{64}", one) for one in sums)


def test_dataset_describe_has_record_facts(found: ModuleType) -> None:
    assert set(found.SET.describe()) == {"name", "title", "preparation"}


def test_networks_name_known_datasets() -> None:
    named = {network.data for network in networks.catalogue().values()} - {""}
    assert named and named <= set(plugins.names("data.sets"))
