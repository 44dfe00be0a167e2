"""Compares tokenizers on SQuAD's dev set: number of tokens, and the highest possible scores.

    .venv/bin/python scripts/tokenizers.py dev-v1.1.json [TOKENIZER ...]
    .venv/bin/python scripts/tokenizers.py dev-v1.1.json wordpiece=vocab.txt

Columns: tokens of all passages; reference answers; answers that are exactly a span of tokens; F1
and exact match of a reader that always picks the span around a reference answer, which bound those
of every other reader.
"""

import sys
from pathlib import Path

import numpy as np

from dawnbench_tf.data.questions import encoding, spans, squad_json, wordpieces
from dawnbench_tf.recipe import Questions

CHOICES = Questions.__dataclass_fields__["tokenizer"].metadata["choices"]
TOKENIZERS = CHOICES[:-1]  # without wordpiece


def main(path: str, *tokenizers: str) -> None:
    """Prints a row for each tokenizer."""
    corpus = squad_json.parse(path, Path(path).read_bytes())
    print("tokenizer  tokens  answers  exact  F1 at most  exact match at most")
    for argument in tokenizers or TOKENIZERS:
        tokenizer, _, file = argument.partition("=")
        words: dict[str, int] = {}
        form = Questions()
        pieces = wordpieces.read(Path(file), cased=False) if file else None
        split = encoding.encode(corpus, words, tokenizer, pieces=pieces)
        vocab = pieces or encoding.build_vocabulary(split, list(words), {}, form)
        encoded = encoding.assemble(split, split, corpus, list(words), {}, vocab, form)
        whole = np.isin(split.alignments, (encoding.ALIGNED, encoding.MOVED)).sum()
        best = spans.score(spans.answers(encoded, _best_spans(split)), encoded)
        counts = f"{len(split.contexts.values):,}  {len(split.alignments):,}  {whole:,}"
        print(f"{tokenizer}  {counts}  {best['f1Score']:.4f}  {best['exactMatch']:.4f}")


def _best_spans(split):
    """Returns for each question the token span of the reference answer that aligns best."""
    chosen = []
    for first, last in zip(split.spans.bounds, split.spans.bounds[1:], strict=False):
        chosen.append(first + np.argmin(split.alignments[first:last]))
    return np.maximum(split.spans.values[chosen], 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
