"""Trains a reading recipe on a part of SQuAD and prints its time, F1 and exact match.

    .venv/bin/python scripts/compare_readers.py DATA_DIR QUESTIONS RECIPE [FIELD=VALUE ...]

Trains on the first QUESTIONS questions of train-v1.1.json and tests on every tenth question of
dev-v1.1.json, 1,000 in all. RECIPE `majority` answers each question with the most frequent training
span (indices of first and last token). Values are JSON, e.g. 'precision="mixed_bfloat16"'. Scores
on a part of the test are no entry.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from dawnbench_tf import recipes, tensorflow_env

EVERY, TESTED = 10, 1000


def main(data_dir: str, questions: str, name: str, *changes: str) -> None:
    """Prints a row: recipe, changes, questions, epochs, seconds of training, F1, exact match."""
    with tensorflow_env.importing():
        from dawnbench_tf.data import squad
        from dawnbench_tf.data.questions import scores

    majority = name == "majority"
    recipe = recipes.get("squad/bidaf_tf" if majority else name)
    values = {field: json.loads(value) for field, value in (c.split("=", 1) for c in changes)}
    recipe = type(recipe).from_values({**recipe.values(), **values})
    with tempfile.TemporaryDirectory() as folder:
        _write_part(Path(data_dir), Path(folder), int(questions))
        encoded = squad.load(folder, form=recipe.data)
        seconds, answers = _majority(encoded) if majority else _train(recipe, encoded)
    row = scores.squad(answers, encoded)
    shown = f"{row['f1Score']:.4f}  {row['exactMatch']:.4f}"
    print(f"{name} {' '.join(changes)}  {questions}  {recipe.epochs:g}  {seconds:.0f} s  {shown}")


def _write_part(source, folder, questions):
    """Makes a folder with links to the source's files, and with a part of its questions."""
    for path in source.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    for name, chosen in (
        ("train-v1.1.json", range(questions)),
        ("dev-v1.1.json", range(0, EVERY * TESTED, EVERY)),
    ):
        whole = json.loads((source / name).read_text(encoding="utf-8"))
        number = 0
        for article in whole["data"]:
            for paragraph in article["paragraphs"]:
                first, number = number, number + len(paragraph["qas"])
                qas = [q for i, q in enumerate(paragraph["qas"], first) if i in chosen]
                paragraph["qas"] = [q for q in qas if all(a["text"].strip() for a in q["answers"])]
            article["paragraphs"] = [part for part in article["paragraphs"] if part["qas"]]
        (folder / name).unlink()
        (folder / name).write_text(json.dumps(whole), encoding="utf-8")


def _majority(encoded):
    """Returns 0 seconds and the answers at the most frequent training span, cut to the context."""
    import numpy as np

    from dawnbench_tf.data.questions import spans

    split = encoded.train
    first_spans = map(tuple, split.spans.values[split.spans.bounds[:-1]].tolist())
    (most, _), *_ = Counter(first_spans).most_common(1)
    lengths = encoded.test.contexts.lengths()[encoded.test.context_of_question]
    return 0.0, spans.answers(encoded, np.minimum(most, lengths[:, None] - 1))


def _train(recipe, encoded):
    """Returns the seconds of training, including compilation, and the answers."""
    from dawnbench_tf import clock
    from dawnbench_tf.data import dataset
    from dawnbench_tf.train import train
    from dawnbench_tf.training import evaluation

    with tempfile.TemporaryDirectory() as folder:
        run = train(recipe, output=folder, data=encoded)
        evaluator = evaluation.Evaluator(dataset.from_splits(recipe, encoded), run.model())
    evaluator()
    return clock.seconds_of(run.clock, ("train", "compile")), evaluator.answers


if __name__ == "__main__":
    main(*sys.argv[1:])
