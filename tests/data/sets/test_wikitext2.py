from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steptime import networks
from steptime.core.errors import SteptimeError
from steptime.data.sets import wikitext2
from steptime.graph import Graph, Net

TRAIN, TEST = " \n = a = \n b a <unk> b \n", " a c \n d b a \n"


def model(length: int, vocabulary: int, classes: int) -> Graph:
    net = Net("tiny")
    return net.graph(
        net.dense(net.embedding(net.tokens(length, vocabulary), vocabulary, 2), classes)
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with zipfile.ZipFile(tmp_path / wikitext2.ARCHIVE, "w") as archive:
        for split, text in (("train", TRAIN), ("test", TEST)):
            archive.writestr(f"wikitext-2/wiki.{split}.tokens", text)
    digest = hashlib.sha256((tmp_path / wikitext2.ARCHIVE).read_bytes()).hexdigest()
    monkeypatch.setattr(
        wikitext2, "SET", replace(wikitext2.SET, files={wikitext2.ARCHIVE: (digest,)})
    )
    return tmp_path


def test_read_words_splits_at_blanks_and_ends_lines(folder: Path) -> None:
    tokens = wikitext2.read_words(folder / wikitext2.ARCHIVE, "train")
    assert " ".join(tokens) == "<eos> = a = <eos> b a <unk> b <eos>"


def test_build_vocabulary_keeps_frequent_words() -> None:
    vocabulary = wikitext2.build_vocabulary(
        ("<eos>", "=", "a", "=", "<eos>", "b", "a", "<unk>", "b", "<eos>"), 4
    )
    assert vocabulary == {"<unk>": 0, "<eos>": 1, "=": 2, "a": 3}
    assert wikitext2.encode(("a", "b", "never", "<eos>"), vocabulary).tolist() == [3, 0, 0, 1]


def test_wikitext2_targets_are_the_next_words(folder: Path) -> None:
    samples = wikitext2.read(folder, "test", model(3, 5, 5))
    assert samples.values.tolist() == [
        [3, 0, 1],
        [0, 4, 3],
    ]  # a c end, d b a; of seven words one is left as a target
    assert samples.targets.tolist() == [[0, 1, 0], [4, 3, 1]]


def test_wikitext2_refuses_network_that_does_not_predict_words(folder: Path) -> None:
    with pytest.raises(SteptimeError, match="tiny does not predict the next word"):
        wikitext2.read(folder, "train", model(3, 5, 7))


def test_wikitext2_refuses_other_archive(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"no archive")
    with pytest.raises(SteptimeError, match="cannot be read: File is not a zip file"):
        wikitext2.read_words(tmp_path / "a.zip", "train")


def test_real_dataset_is_complete(real_data: Path) -> None:
    archive = wikitext2.SET.find_verified(wikitext2.ARCHIVE, real_data)
    counts = [len(wikitext2.read_words(archive, split)) for split in ("train", "valid", "test")]
    assert counts == [2_088_628, 217_646, 245_569]
    samples = wikitext2.read(real_data, "test", networks.load("ptb-lstm-small").graph)
    assert samples.values.shape == (12_278, 20) and samples.values.max() < 10_000
    assert 0.1 < np.mean(samples.values == 0) < 0.15  # <unk>
