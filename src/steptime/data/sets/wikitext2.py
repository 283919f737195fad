"""WikiText-2: good articles of Wikipedia, word by word; the free stand-in for Penn Treebank, which is not free."""

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
SET = DataSet(
    name="wikitext2",
    title="WikiText-2",
    address="https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
    files={
        # The authors' file, and one with the same articles in another order: results agree, single batches do not.
        ARCHIVE: (
            "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
            "84a704854cba95c04b2ec56fdc47caaa8a29a0a0ce3d305fee9289a3d7000293",
        )
    },
    preparation="words between blanks, <eos> after each line, the training part's most frequent words and <unk>",
    metric="perplexity",
)
END, RARE = "<eos>", "<unk>"


def read(folder: Path, part: str, graph: Graph) -> Samples:
    """Sequences of the network's length, one behind the other; the target is the word that follows each word."""
    length, vocabulary = _wanted(graph)
    archive = SET.checked(ARCHIVE, folder)
    known = numbers(read_words(archive, "train"), vocabulary)
    stream = encode(read_words(archive, part), known)
    rows = (len(stream) - 1) // length
    targets = stream[1 : rows * length + 1].reshape(rows, length)
    return Samples(stream[: rows * length].reshape(rows, length), targets)


def _wanted(graph: Graph) -> tuple[int, int]:
    kind, output = graph.input.op, graph[graph.output].shape
    assert isinstance(kind, Input)
    if not kind.vocabulary or len(kind.dims) != 1 or output != (*kind.dims, kind.vocabulary):
        raise SteptimeError(
            f"{graph.name} does not predict the next word: {graph.input.shape} becomes {output}."
        )
    return kind.dims[0], kind.vocabulary


@cache
def read_words(archive: Path, part: str) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(archive) as content:
            text = content.read(f"wikitext-2/wiki.{part}.tokens").decode()
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as problem:
        raise SteptimeError(
            f"{archive} cannot be read: {problem}. Get it anew from {SET.address}."
        ) from None
    return tuple(
        word for line in text.removesuffix("\n").split("\n") for word in (*line.split(), END)
    )


def numbers(words: tuple[str, ...], vocabulary: int) -> dict[str, int]:
    """A number for each of the most frequent words, equal counts by alphabet; rare ones share that of <unk>."""
    counts = Counter(words)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    kept = [word for word in ordered if word != RARE][: vocabulary - 1]
    return {word: number for number, word in enumerate([RARE, *kept])}


def encode(words: tuple[str, ...], known: dict[str, int]) -> NDArray[np.int64]:
    return np.array([known.get(word, known[RARE]) for word in words], np.int64)
