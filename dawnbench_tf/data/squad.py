"""SQuAD v1.1 from disk: train-v1.1.json, dev-v1.1.json and GloVe in a folder, or TFDS's folder.

Words are cut once, and what comes of it is kept in a cache, whose key is the files' content.
"""

import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np

from dawnbench_tf.data import passages, reading, tokens, vocabulary
from dawnbench_tf.data.passages import Passages, Question
from dawnbench_tf.data.reading import Encoded, Ragged, Reading
from dawnbench_tf.settings import Refusal, one_line, refuse

TRAIN, TEST = "train-v1.1.json", "dev-v1.1.json"
HOME = "https://rajpurkar.github.io/SQuAD-explorer/"
GLOVE_HOME = "https://nlp.stanford.edu/projects/glove/"
LEAST = (10, 50)  # a word without vector, a character: known if seen more often, as in the seed


def load(data_dir: str, download: bool = False) -> Reading:
    """SQuAD v1.1's 87,599 training and 10,570 test questions (its dev set), and word vectors.

    Args:
      data_dir: a folder with train-v1.1.json, dev-v1.1.json (or TensorFlow Datasets' squad/), and
        glove.6B.100d.txt or glove.6B.zip.
      download: let TensorFlow Datasets download and prepare SQuAD in `data_dir`.

    Raises:
      Refusal: something is missing, or is not the published data.
    """
    if not data_dir:
        refuse(
            "data_dir", "", f"squad needs a folder with {TRAIN}, {TEST} and GloVe (or --synthetic)"
        )
    root = Path(data_dir).expanduser()
    if not root.is_dir():
        refuse("data_dir", data_dir, f"is no folder; should hold {TRAIN}, {TEST} and GloVe")
    glove = next(
        (root / n for n in (vocabulary.GLOVE, "glove.6B.zip") if (root / n).is_file()), None
    )
    if glove is None:
        refuse(
            "data_dir", data_dir, f"holds no {vocabulary.GLOVE} or glove.6B.zip; see {GLOVE_HOME}"
        )
    if (root / TRAIN).is_file() or not (download or (root / "squad").is_dir()):
        train, test = (_read(root / name) for name in (TRAIN, TEST))
    else:
        train, test = _from_tfds(root, download)
    return _encoded(train, test, glove)


def _read(path):
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refusal(
            f"{path}: can't be read ({error.strerror}); fetch it from {HOME}, or add --download"
        ) from None
    return passages.parse(str(path), content)


def _encoded(train, test, glove):
    cache = _cache_file(train, test, glove)
    known = _from_cache(cache)
    if known is None:
        known = _encode(train, test, glove)
        _to_cache(cache, *known)
    train_numbers, test_numbers, words, vectors = known
    _report(train_numbers, test_numbers)
    return reading.assemble(train_numbers, test_numbers, test, words, vectors, LEAST)


def _encode(train, test, glove):
    words = {}
    done = [reading.encode(split, words, _progress) for split in (train, test)]
    if sys.stderr.isatty():
        print(f"\r\x1b[Kreading {glove.name}", end="\r", file=sys.stderr, flush=True)
    vectors = vocabulary.read_glove(glove, {vocabulary.plain(word) for word in words})
    return *done, list(words), vectors


def _progress(done, of):
    if sys.stderr.isatty():
        line = f"\rcutting words: {done:,} of {of:,} passages"
        print(line, end="", file=sys.stderr, flush=True)


def _report(train, test):
    """Says how many answers' text is not exactly that of their words."""
    for name, split in (("train", train), ("dev", test)):
        counts = np.bincount(split.found, minlength=4)
        if counts[1:].any():
            print(
                f"squad {name}: {counts.sum():,} answers; {counts[reading.CUT]:,} end inside a "
                f"word, {counts[reading.MOVED]:,} were moved to where their text is, "
                f"{counts[reading.NOWHERE]:,} are nowhere in the passage (not trained on)",
                file=sys.stderr,
            )


# The cache.


def _cache_file(train, test, glove):
    """The cache of exactly this data: its name is a hash of the content and of our own code."""
    digest = hashlib.sha256(repr((train, test)).encode("utf-8", "surrogatepass"))
    with open(glove, "rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    for module in (reading, tokens, vocabulary):
        digest.update(Path(module.__file__).read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "dawnbench_tf" / f"squad-{digest.hexdigest()[:24]}.npz"


def _to_cache(path, train, test, words, vectors):
    arrays = {"vectors": np.array([vectors[word] for word in sorted(vectors)], np.float32)}
    texts = {"words": words, "known": sorted(vectors)}
    for name, split in (("train", train), ("test", test)):
        for field, value in split._asdict().items():
            for part, array in (
                value._asdict() if isinstance(value, Ragged) else {"": value}
            ).items():
                arrays[f"{name}.{field}.{part}"] = array
    for name, text in texts.items():
        arrays[name] = np.frombuffer(json.dumps(text).encode(), np.uint8)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(temporary, **arrays)
        os.replace(temporary, path)
    except OSError as error:  # a full disk costs the next run a minute, no more
        temporary.unlink(missing_ok=True)
        print(f"{path}: can't be written ({error.strerror}); going on without", file=sys.stderr)


def _from_cache(path):
    """What the cache holds; None if there is none, or it is damaged."""
    try:
        with open(path, "rb") as whole, np.load(whole, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        words, known = (json.loads(arrays[name].tobytes()) for name in ("words", "known"))
        splits = [_split(arrays, name) for name in ("train", "test")]
        return *splits, words, dict(zip(known, arrays["vectors"], strict=True))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _split(arrays, name):
    def field(key):
        if f"{name}.{key}." in arrays:
            return arrays[f"{name}.{key}."]
        return Ragged(*(arrays[f"{name}.{key}.{part}"] for part in Ragged._fields))

    return Encoded(*(field(key) for key in Encoded._fields))


def _from_tfds(root, download):
    import tensorflow_datasets as tfds  # takes seconds, and only this path needs it

    try:
        builder = tfds.builder("squad/v1.1", data_dir=root)
        if download:
            builder.download_and_prepare()
        return [_of_tfds(builder.as_dataset(split=split)) for split in ("train", "validation")]
    except Exception as error:  # TFDS raises errors of a dozen kinds for damaged or missing files
        refuse("data_dir", root, f"TensorFlow Datasets can't provide squad/v1.1: {one_line(error)}")


def _of_tfds(dataset):
    contexts, questions = {}, []
    for row in dataset.as_numpy_iterator():
        passage = contexts.setdefault(row["context"].decode(), len(contexts))
        texts = [text.decode() for text in row["answers"]["text"]]
        answers = tuple(zip(texts, row["answers"]["answer_start"].tolist(), strict=True))
        questions.append(Question(row["id"].decode(), row["question"].decode(), passage, answers))
    return Passages(list(contexts), questions)
