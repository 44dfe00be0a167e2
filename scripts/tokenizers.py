"""How texts are cut by each tokenizer, and what of the answers it leaves: SQuAD's dev set.

    .venv/bin/python scripts/tokenizers.py dev-v1.1.json [TOKENIZER ...]
    .venv/bin/python scripts/tokenizers.py dev-v1.1.json wordpiece=vocab.txt

Tokens of all passages; right answers that are exactly some of these; and the F1 and exact match of
a reader that always picks the tokens around a right answer: no other can have more.
"""

import sys
from pathlib import Path

import numpy as np

from dawnbench_tf.data.questions import encoding, scores, spans, squad_json, wordpieces
from dawnbench_tf.recipe import Questions, Recipe

TOKENIZERS = Recipe.__dataclass_fields__["tokenizer"].metadata["choices"][:-1]  # all of words


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
        vocab = pieces or encoding.make_choice(form, 0, 0)
        encoded = encoding.assemble(split, split, corpus, list(words), {}, vocab, form)
        whole = np.isin(split.alignments, (encoding.ALIGNED, encoding.MOVED)).sum()
        best = scores.squad(spans.answers(encoded, _right(split)), encoded)
        counts = f"{len(split.contexts.values):,}  {len(split.alignments):,}  {whole:,}"
        print(f"{tokenizer}  {counts}  {best['f1Score']:.4f}  {best['exactMatch']:.4f}")


def _right(split):
    """For each question a right answer's tokens: one that these are exactly, if there is any."""
    chosen = []
    for first, last in zip(split.spans.bounds, split.spans.bounds[1:], strict=False):
        chosen.append(first + np.argmin(split.alignments[first:last]))
    return np.maximum(split.spans.values[chosen], 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
