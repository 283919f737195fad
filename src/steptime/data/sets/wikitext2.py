"""WikiText-2: good Wikipedia articles, word by word; stands in for Penn Treebank, which is paid."""

from __future__ import annotations

import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import SteptimeError
from steptime.data.sets import DataSet, Samples
from steptime.graph import Graph
from steptime.graph.ops import Input

ARCHIVE = "wikitext-2-v1.zip"
ADDRESSES = (
    "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
    "https://wikitext.smerity.com/wikitext-2-v1.zip",
)
SET = DataSet(
    name="wikitext2",
    title="WikiText-2",
    address=" or ".join(ADDRESSES),
    files={
        # The authors' file, and one with the same articles in another order. Results agree,
        # single batches do not.
        ARCHIVE: (
            "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
            "84a704854cba95c04b2ec56fdc47caaa8a29a0a0ce3d305fee9289a3d7000293",
        )
    },
    preparation=(
        "words between blanks, <eos> after each line, "
        "the training part's most frequent words and <unk>"
    ),
    metric="perplexity",
    downloads={ARCHIVE: ADDRESSES},
)
END, RARE = "<eos>", "<unk>"


def read(folder: Path, split: str, graph: Graph) -> Samples:
    """Consecutive sequences of the network's length. Each word's target is the next word."""
    length, vocabulary_size = _sequence_shape(graph)
    archive = SET.find_verified(ARCHIVE, folder)
    vocabulary = build_vocabulary(read_words(archive, "train"), vocabulary_size)
    stream = encode(read_words(archive, split), vocabulary)
    rows = (len(stream) - 1) // length
    targets = stream[1 : rows * length + 1].reshape(rows, length)
    return Samples(stream[: rows * length].reshape(rows, length), targets)


def _sequence_shape(graph: Graph) -> tuple[int, int]:
    """Words in a sequence, and words in the vocabulary."""
    op = graph.input.op
    output = graph[graph.output].shape
    assert isinstance(op, Input)
    if not op.vocabulary or len(op.dims) != 1 or output != (*op.dims, op.vocabulary):
        raise SteptimeError(
            f"{graph.name} does not predict the next word: {graph.input.shape} becomes {output}."
        )
    return op.dims[0], op.vocabulary


@cache
def read_words(archive: Path, split: str) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(archive) as content:
            text = content.read(f"wikitext-2/wiki.{split}.tokens").decode()
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as problem:
        raise SteptimeError(
            f"{archive} cannot be read: {problem}. Download it again from {SET.address}."
        ) from None
    tokens: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        tokens += [*line.split(), END]
    return tuple(tokens)


def build_vocabulary(tokens: tuple[str, ...], size: int) -> dict[str, int]:
    """A number for each of the most frequent words; the rarer ones share that of <unk>.

    Words with equal counts are in alphabetical order."""
    counts = Counter(tokens)
    ordered = sorted(counts, key=lambda token: (-counts[token], token))
    frequent = [token for token in ordered if token != RARE][: size - 1]
    return {token: number for number, token in enumerate([RARE, *frequent])}


def encode(tokens: tuple[str, ...], vocabulary: dict[str, int]) -> NDArray[np.int64]:
    rare = vocabulary[RARE]
    return np.array([vocabulary.get(token, rare) for token in tokens], np.int64)
