"""A parser of SQuAD v1.1's JSON that checks every key.

{"version": "1.1", "data": [{"title": ..., "paragraphs": [{"context": ..., "qas": [
    {"id": ..., "question": ..., "answers": [{"text": ..., "answer_start": ...}]}]}]}]}
"""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from dawnbench_tf.data.own import division
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refusing

T = TypeVar("T")
MOST = 5_000_000  # lists and objects, of 100 bytes each; SQuAD's training file has 500,000


class Question(NamedTuple):
    """A question on a context, with all its right answers."""

    id: str
    text: str
    context: int  # index into Corpus.contexts
    answers: tuple[tuple[str, int], ...]  # text, and offset of its first character in the context


class Corpus(NamedTuple):
    """The contexts (SQuAD's passages) and questions of a file."""

    contexts: list[str]
    questions: list[Question]


def parse(where: str, content: bytes) -> Corpus:
    """Parses the content of a SQuAD v1.1 file."""
    if content.count(b"[") + content.count(b"{") > MOST:
        raise Refusal(f"{where}: holds more lists and objects than SQuAD; fetch it again")
    kinds = ValueError, RecursionError, MemoryError
    with refusing(where, "not JSON", *kinds, hint="fetch it again"):
        whole = json.loads(content)
    contexts: list[str] = []
    questions: list[Question] = []
    ids: set[str] = set()
    for article, article_key in _items(whole, "data", where):
        for paragraph, paragraph_key in _items(article, "paragraphs", article_key):
            context = _text(paragraph, "context", paragraph_key)
            for qa, qa_key in _items(paragraph, "qas", paragraph_key):
                questions.append(_question(qa, len(contexts), qa_key))
                if questions[-1].id in ids:
                    twice = one_line(ascii(questions[-1].id), 60)
                    raise Refusal(f"{qa_key}.id: {twice} is there twice; should be one")
                ids.add(questions[-1].id)
            contexts.append(context)
    if not questions:
        raise Refusal(f"{where}: holds no question; should be SQuAD v1.1's JSON")
    return Corpus(contexts, questions)


def select_questions(corpus: Corpus, indices: Iterable[int]) -> Corpus:
    """Returns a corpus of some questions, with the contexts that they are on."""
    questions = [corpus.questions[index] for index in indices]
    kept = sorted({question.context for question in questions})
    numbers = {context: number for number, context in enumerate(kept)}
    return Corpus(
        [corpus.contexts[context] for context in kept],
        [question._replace(context=numbers[question.context]) for question in questions],
    )


def training_part(corpus: Corpus, recipe: Recipe) -> Corpus:
    """Returns the questions that a recipe with `train_examples` uses; without it all."""
    if not recipe.train_examples:
        return corpus
    count = len(corpus.questions)
    return select_questions(corpus, division.choose(count, recipe.train_examples, recipe.seed))


def _question(qa: Any, context: int, where: str) -> Question:
    if isinstance(qa, dict) and qa.get("is_impossible", False) is not False:
        raise Refusal(f"{where}: is_impossible, so this is SQuAD v2; should be v1.1")
    answers = []
    for answer, answer_key in _items(qa, "answers", where):
        start = _value(answer, "answer_start", int, answer_key)
        if not -1 <= start < 2**31:
            raise Refusal(f"{answer_key}.answer_start: should be an offset in the context")
        # One without text is nowhere in the context, and not trained on.
        answers.append((_text(answer, "text", answer_key, least=0), start))
    if not answers:
        raise Refusal(f"{where}.answers: is empty; each question should have an answer")
    return Question(_text(qa, "id", where), _text(qa, "question", where), context, tuple(answers))


def _value(node: Any, key: str, type_: type[T], where: str) -> T:
    """Returns node[key]; raises Refusal, naming the path of keys, if it is not of the type."""
    if not isinstance(node, dict) or key not in node:
        raise Refusal(f"{where}: has no {key!r}; should be SQuAD v1.1's JSON")
    if not isinstance(node[key], type_) or isinstance(node[key], bool):
        raise Refusal(f"{where}.{key}: is a {type(node[key]).__name__}, should be {type_.__name__}")
    return node[key]


def _text(node: Any, key: str, where: str, least: int = 1) -> str:
    text = _value(node, key, str, where)
    if len(text.strip()) < least:
        raise Refusal(f"{where}.{key}: is empty; should be text")
    if re.search("[\ud800-\udfff]", text):
        fault = "holds half of a character (a lone surrogate)"
        raise Refusal(f"{where}.{key}: {fault}; fetch it again")
    return text


def _items(node: Any, key: str, where: str) -> list[tuple[Any, str]]:
    """Returns (item, path of keys) for each item of a list."""
    return [(item, f"{where}.{key}[{i}]") for i, item in enumerate(_value(node, key, list, where))]
