"""SQuAD v1.1 from disk: its two JSON files or TFDS's folder, with word vectors or a BERT beside it.

Texts are tokenized once. A cache keeps the result; its key is a hash of the files' content.
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from dawnbench_tf import files, terminal
from dawnbench_tf.data import archives, tfds
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.questions import (
    encoding,
    squad_json,
    tokens,
    vocabulary,
    word_vectors,
    wordpieces,
)
from dawnbench_tf.data.questions.encoding import Encoded, EncodedSplit
from dawnbench_tf.data.questions.squad_json import Corpus, Question
from dawnbench_tf.data.questions.vocabulary import Vocabulary
from dawnbench_tf.data.questions.word_vectors import WORD_VECTORS
from dawnbench_tf.recipe import Questions, Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing

TRAIN, TEST = "train-v1.1.json", "dev-v1.1.json"
# SHA-256, as published by TensorFlow Datasets.
PUBLISHED = {
    TRAIN: "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
    TEST: "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
}
HOME = "https://rajpurkar.github.io/SQuAD-explorer/"
_FETCH = f"fetch it from {HOME} (train also takes --download)"
# Counts that a token without a vector, or a character, has to exceed; as in DAWNBench's seed.
MIN_COUNTS = (10, 50)


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Encoded:
    """Loads SQuAD v1.1's training and test questions (its dev set), and word vectors."""
    root = Path(data_dir).expanduser()
    in_json = (root / TRAIN).is_file() or not (download or tfds.is_prepared(root / "squad"))
    words, weights = _find(recipe, data_dir, root, in_json)
    if in_json:
        train, test = (read(root / name) for name in (TRAIN, TEST))
        verified = all(archives.is_published(root / n, {n: PUBLISHED[n]}) for n in PUBLISHED)
        origin = Origin(f"{TRAIN}, {TEST}", verified)
    else:
        opened = tfds.builder(root, "squad/v1.1", download)
        train, test = (tfds.read(opened, name, _convert_split) for name in ("train", "validation"))
        origin = Origin("TensorFlow Datasets")
    return encode(recipe, train, test, words)._replace(origin=origin, pretrained=weights)


def find_words(root: Path, recipe: Recipe) -> tuple[Path | None, Path | None]:
    """Finds the files of word vectors or WordPieces (None: all are learned), and of weights."""
    if recipe.network.pretrained:
        return wordpieces.find(root, recipe.network.pretrained)
    if recipe.data.word_vectors == "none":
        return None, None
    return word_vectors.find(root, recipe.data.word_vectors), None


def load_test(recipe: Recipe, data_dir: str, pieces: Path) -> Encoded:
    """Loads SQuAD's dev set alone, as WordPieces; the training split is empty."""
    path = Path(data_dir).expanduser() / TEST
    _check_file(path)
    return encode(recipe, Corpus([], []), read(path), pieces)._replace(
        origin=Origin(TEST, archives.is_published(path, {TEST: PUBLISHED[TEST]}))
    )


def _find(
    recipe: Recipe, data_dir: str, root: Path, in_json: bool
) -> tuple[Path | None, Path | None]:
    """Finds the files of `find_words`. Raises one Refusal that names everything that is missing."""
    checks: list[Callable[[], Any]] = [partial(find_words, root, recipe)]
    checks += [partial(_check_file, root / name) for name in (TRAIN, TEST) if in_json]
    if not data_dir or not root.is_dir():
        checks = [partial(_refuse_folder, recipe, data_dir)]
    checks.append(partial(tokens.version, recipe.data.tokenizer))
    values, refusals = [], []
    for check in checks:
        try:
            values.append(check())
        except Refusal as refusal:
            refusals.append(str(refusal))
    if refusals:
        raise Refusal("; and ".join(refusals))
    return values[0]


def _refuse_folder(recipe: Recipe, data_dir: str) -> NoReturn:
    wanted = f"the folder {recipe.network.pretrained} of a BERT"
    if not recipe.network.pretrained:
        wanted = str(WORD_VECTORS[recipe.data.word_vectors])
    reason = "is no folder" if data_dir else "squad needs one"
    expected = f"should hold {TRAIN}, {TEST} and {wanted} (or --synthetic=decoded)"
    refuse("data_dir", data_dir, f"{reason}; {expected}")


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise Refusal(f"{path}: can't be read (No such file); {_FETCH}")


def read(path: Path) -> Corpus:
    """Reads a file in SQuAD v1.1's form. Raises Refusal if it can't be read or has another form."""
    with refusing(path, "can't be read", OSError, hint=_FETCH):
        content = path.read_bytes()
    return squad_json.parse(str(path), content)


# The content of the cache: training and test split; all distinct tokens as written, by type id;
# word vectors by normalized token, none for WordPieces.
_Tokenized = tuple[EncodedSplit, EncodedSplit, list[str], dict[str, np.ndarray]]


def encode(recipe: Recipe, train: Corpus, test: Corpus, source: Path | None) -> Encoded:
    """Tokenizes and encodes a data set, or reads the cache of an earlier call."""
    form, network, whole = recipe.data, recipe.network, len(train.questions)
    train = squad_json.training_part(train, recipe)
    pieces = wordpieces.read(source, network.cased) if network.pretrained and source else None
    cache = _cache_file(train, test, source, form, network.cased)
    tokenized = _read_cache(cache)
    if tokenized is None:
        tokenized = _tokenize(train, test, source, form, pieces)
        if cache:
            _write_cache(cache, tokenized)
    train_split, test_split, words, vectors = tokenized
    for name, corpus, split in (("train", train, train_split), ("dev", test, test_split)):
        empty = np.flatnonzero(split.contexts.lengths()[split.context_of_question] == 0)
        if len(empty):
            key = one_line(ascii(corpus.questions[empty[0]].id), 60)
            refuse("data_dir", "", f"the passage of question {key} has no word; should be text")
        counts = np.bincount(split.alignments, minlength=4)
        if counts[1:].any():  # answers that do not start and end at token boundaries
            terminal.say(
                f"squad {name}: {counts.sum():,} answers; {counts[encoding.CUT]:,} end inside a "
                f"word, {counts[encoding.MOVED]:,} were moved to where their text is, "
                f"{counts[encoding.NOWHERE]:,} are empty or nowhere in the passage (not trained on)"
            )
    vocab = pieces or encoding.build_vocabulary(
        train_split, words, vectors, form, MIN_COUNTS if source else (0, 0)
    )
    encoded = encoding.assemble(train_split, test_split, test, words, vectors, vocab, form)
    return encoded._replace(whole=whole)


def _tokenize(
    train: Corpus, test: Corpus, path: Path | None, form: Questions, pieces: Vocabulary | None
) -> _Tokenized:
    words: dict[str, int] = {}
    splits = [encoding.encode(c, words, form.tokenizer, pieces) for c in (train, test)]
    vectors: dict[str, np.ndarray] = {}
    if path and not pieces:
        terminal.status(f"reading {path.name}", logged=False)
        cased = WORD_VECTORS[form.word_vectors].cased
        spelled = {vocabulary.normalize(word, cased) for word in words}
        vectors = word_vectors.read(path, form.word_vectors, spelled)
    terminal.status("")
    return splits[0], splits[1], list(words), vectors


# The cache.


def _cache_file(
    train: Corpus, test: Corpus, source: Path | None, form: Questions, cased: bool
) -> Path | None:
    """Returns the path of the cache; its name is a hash of the data and of this package's code."""
    key = (train, test, tokens.version(form.tokenizer), form.word_vectors, cased)
    digest = hashlib.sha256(repr(key).encode("utf-8", "surrogatepass"))
    if source:
        digest.update(bytes.fromhex(files.digest(source, hint="fetch it again")))
    for path in sorted(Path(encoding.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    folder = files.cache_folder()
    return folder / f"squad-{digest.hexdigest()[:24]}.npz" if folder else None


def _write_cache(path: Path, tokenized: _Tokenized) -> None:
    *splits, words, vectors = tokenized
    with_vector = sorted(vectors)
    numbers = np.array([vectors[word] for word in with_vector], np.float32)
    texts = np.frombuffer(json.dumps([words, with_vector]).encode(), np.uint8)
    numbered = {str(number): array for number, array in enumerate(tf.nest.flatten(splits))}
    # Without the cache the next run tokenizes again, for a minute.
    files.cache_npz(path, {"texts": texts, "vectors": numbers, **numbered})


def _read_cache(path: Path | None) -> _Tokenized | None:
    """Reads the cache; None if it is missing or damaged: it has checksums."""
    try:
        arrays = files.read_npz(path.read_bytes()) if path else {}
        words, with_vector = json.loads(arrays.pop("texts").tobytes())
        vectors = dict(zip(with_vector, arrays.pop("vectors"), strict=True))
        empty = encoding.encode(Corpus([], []), {})
        ordered = [arrays[str(number)] for number in range(len(arrays))]
        train, test = tf.nest.pack_sequence_as((empty, empty), ordered)
        return train, test, words, vectors
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # the cache is made again
        return None


def _convert_split(dataset: tf.data.Dataset) -> Corpus:
    contexts: dict[str, int] = {}
    questions = []
    for row in dataset.as_numpy_iterator():
        context = contexts.setdefault(row["context"].decode(), len(contexts))
        texts = [text.decode() for text in row["answers"]["text"]]
        answers = tuple(zip(texts, row["answers"]["answer_start"].tolist(), strict=True))
        questions.append(Question(row["id"].decode(), row["question"].decode(), context, answers))
    return Corpus(list(contexts), questions)
