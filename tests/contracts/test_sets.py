"""What every plugin of `data.sets` must have, and that networks name existing datasets."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from steptime import networks, plugins


@pytest.fixture(params=plugins.names("data.sets"))
def module(request: pytest.FixtureRequest) -> ModuleType:
    module = plugins.load("data.sets", request.param)
    assert module.SET.name == request.param
    return module


def test_dataset_names_source_and_preparation(module: ModuleType) -> None:
    assert module.SET.title and module.SET.address.startswith("https://") and module.SET.preparation
    assert module.SET.metric in ("accuracy", "perplexity") and callable(module.read)


def test_dataset_files_have_digests(module: ModuleType) -> None:
    digests = [digest for editions in module.SET.files.values() for digest in editions]
    assert digests and all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)


def test_dataset_describe_has_record_facts(module: ModuleType) -> None:
    assert set(module.SET.describe()) == {"name", "title", "preparation"}


def test_networks_name_known_datasets() -> None:
    named = {network.data for network in networks.catalogue().values()} - {""}
    assert named and named <= set(plugins.names("data.sets"))
