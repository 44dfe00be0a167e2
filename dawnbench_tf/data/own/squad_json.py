"""Questions on passages of the user's own, in SQuAD v1.1's JSON.

A folder has train*.json and dev*.json (or val*, validation*, test*), and the recipe's word vectors
or BERT; with a validation share it has train*.json alone, or is one JSON file.
"""

from pathlib import Path

import numpy as np

from dawnbench_tf.data import squad
from dawnbench_tf.data.origin import Origin
from dawnbench_tf.data.own import division
from dawnbench_tf.data.questions import squad_json
from dawnbench_tf.data.questions.encoding import Encoded
from dawnbench_tf.data.questions.squad_json import Corpus
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import refuse

_TRAIN, _TESTS = "train", ("dev", "val", "validation", "test")  # first words of file names


def load(recipe: Recipe, data_dir: str, download: bool = False) -> Encoded:
    """Loads questions from JSON files, and word vectors unless the recipe learns all of them."""
    train_file, test_file = _find(data_dir, recipe.validation_share)
    train = squad.read(train_file)
    if test_file:
        test = squad.read(test_file)
    else:
        train, test = _divide(train, recipe)
    words, weights = squad.find_words(train_file.parent, recipe)
    encoded = squad.encode(recipe, train, test, words)
    names = [path.name for path in (train_file, test_file) if path]
    return encoded._replace(origin=Origin(", ".join(names)), pretrained=weights)


def _find(data_dir: str, share: float) -> tuple[Path, Path | None]:
    """Returns the files of the training and of the test questions; None: to divide the first."""
    root = Path(data_dir).expanduser()
    if not data_dir or not root.exists():
        text = "should be a folder with train.json and dev.json, in SQuAD v1.1's form"
        refuse("data_dir", data_dir, f"does not exist; {text}" if data_dir else text)
    if root.is_file():
        trains, tests = [root], []
    else:
        trains = sorted(root.glob(f"{_TRAIN}*.json"))
        tests = sorted({path for name in _TESTS for path in root.glob(f"{name}*.json")})
    if len(trains) != 1 or len(tests) > 1:
        names = ", ".join(path.name for path in [*trains, *tests]) or "none"
        refuse("data_dir", data_dir, f"should have one train*.json and one dev*.json; has {names}")
    if bool(tests) == bool(share):
        text = f"{tests[0].name} is the test; leave this out" if tests else "should be over 0"
        refuse("validation_share", share, f"{text}: it divides a data set without a test")
    return trains[0], tests[0] if tests else None


def _divide(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, Corpus]:
    """Divides questions by their passages, so that the test has passages of its own."""
    # By text: a file may hold a passage again for each of its questions.
    texts = [corpus.contexts[question.context] for question in corpus.questions]
    passages = list(dict.fromkeys(texts))
    if len(passages) < 2:
        refuse("validation_share", recipe.validation_share, "divides passages; the file has one")
    one_class = np.zeros(len(passages), np.int64)
    _, chosen_indices = division.divide(one_class, recipe.validation_share, recipe.seed)
    chosen = {passages[index] for index in chosen_indices}
    in_test = np.array([text in chosen for text in texts])
    train, test = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    return squad_json.select_questions(corpus, train), squad_json.select_questions(corpus, test)
