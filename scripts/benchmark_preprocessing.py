"""Measures time and memory of SQuAD's first load: 90,000 questions, 400,000 word vectors.

.venv/bin/python scripts/benchmark_preprocessing.py
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

CONTEXTS, QUESTIONS = 18_000, 5  # 5 questions a context of 115 words; SQuAD: 18,896 of 137 words


def main():
    """Prints the seconds of the first load and of a cached one, and the peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        from dawnbench_tf import recipes
        from dawnbench_tf.data import squad

        _write(Path(folder))
        before = _memory()
        for name in ("first load", "from the cache"):
            start = time.perf_counter()
            data = squad.load(recipes.get("squad/bidaf_tf"), folder)
            print(f"{name}: {time.perf_counter() - start:.1f} s")
        count = sum(len(split.context_of_question) for split in (data.train, data.test))
        print(f"{count:,} questions; {_memory():.1f} GB at most, {before:.1f} before")


def _memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _write(folder):
    """Writes files of SQuAD's format and size; contexts are joined in pairs for their length."""
    from dawnbench_tf.data import qa_mini, squad

    for name, count in ((squad.TRAIN, CONTEXTS), (squad.TEST, 100)):
        whole = json.loads(qa_mini.write_json(2 * count, 0, name))
        (article,) = whole["data"]
        pairs = zip(article["paragraphs"][::2], article["paragraphs"][1::2], strict=True)
        article["paragraphs"] = [
            {"context": f"{a['context']} {b['context']}", "qas": a["qas"][:QUESTIONS]}
            for a, b in pairs
        ]
        (folder / name).write_text(json.dumps(whole))
    numbers = " ".join(f"0.{n:05}" for n in range(100))
    with open(folder / "glove.6B.100d.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{word} {numbers}\n" for word in ("ada", "bought", "for"))
        file.writelines(f"word{n} {numbers}\n" for n in range(400_000))


if __name__ == "__main__":
    sys.exit(main())
