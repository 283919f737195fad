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


def test_dataset_downloads_have_public_addresses_and_complete_it(module: ModuleType) -> None:
    data_set = module.SET
    assert set(data_set.downloads) <= {*data_set.files, *data_set.other_forms}
    # Either every file, or another form of all, which the set itself must verify.
    assert set(data_set.files) <= set(data_set.downloads) or hasattr(module, "check")
    for file, addresses in data_set.downloads.items():
        assert addresses
        for address in addresses:
            assert address.startswith("https://") and address.endswith(f"/{file}")


def test_dataset_describe_has_record_facts(module: ModuleType) -> None:
    assert set(module.SET.describe()) == {"name", "title", "preparation"}


def test_networks_name_known_datasets() -> None:
    named = {network.data for network in networks.catalogue().values()} - {""}
    assert named and named <= set(plugins.names("data.sets"))
