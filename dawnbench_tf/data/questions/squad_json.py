"""Contexts with questions and answers, in SQuAD v1.1's JSON form, checked key by key.

{"version": "1.1", "data": [{"title": ..., "paragraphs": [{"context": ..., "qas": [
    {"id": ..., "question": ..., "answers": [{"text": ..., "answer_start": ...}]}]}]}]}
"""

import json
from typing import NamedTuple

from dawnbench_tf.refusals import Refusal, one_line

MOST = 5_000_000  # lists and objects; SQuAD's training file has 500,000, each takes 100 bytes


class Question(NamedTuple):
    """A question on a context, and every answer that counts as right."""

    id: str
    text: str
    context: int  # index into Corpus.contexts
    answers: tuple[tuple[str, int], ...]  # text, and the character of the context it starts at


class Corpus(NamedTuple):
    """All contexts (SQuAD's passages) of a file, and all questions on them."""

    contexts: list[str]
    questions: list[Question]


def parse(where: str, content: bytes) -> Corpus:
    """Reads a file's content. Raises Refusal, naming the key, if it is not SQuAD v1.1.

    Args:
      where: the file's name, for the error.
      content: its bytes.
    """
    if content.count(b"[") + content.count(b"{") > MOST:
        raise Refusal(f"{where}: holds more lists and objects than SQuAD; fetch it again")
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refusal(f"{where}: not JSON ({one_line(error)}); fetch it again") from None
    contexts: list[str] = []
    questions: list[Question] = []
    seen: set[str] = set()
    for article, at_article in _items(whole, "data", where):
        for paragraph, at in _items(article, "paragraphs", at_article):
            context = _text(paragraph, "context", at)
            for qa, at_qa in _items(paragraph, "qas", at):
                questions.append(_question(qa, len(contexts), at_qa))
                if questions[-1].id in seen:
                    twice = one_line(ascii(questions[-1].id), 60)
                    raise Refusal(f"{at_qa}.id: {twice} is there twice; should be one")
                seen.add(questions[-1].id)
            contexts.append(context)
    if not questions:
        raise Refusal(f"{where}: holds no question; should be SQuAD v1.1's JSON")
    return Corpus(contexts, questions)


def _question(qa, context, at):
    if isinstance(qa, dict) and "is_impossible" in qa:
        raise Refusal(f"{at}: has is_impossible, so this is SQuAD v2; v1.1 is what is measured")
    answers = []
    for answer, at_answer in _items(qa, "answers", at):
        start = _value(answer, "answer_start", int, at_answer)
        if not -1 <= start < 2**31:
            raise Refusal(f"{at_answer}.answer_start: should be a place in the context")
        answers.append((_text(answer, "text", at_answer), start))
    if not answers:
        raise Refusal(f"{at}.answers: is empty; each question should have an answer")
    return Question(_text(qa, "id", at), _text(qa, "question", at), context, tuple(answers))


def _value(node, key, type_, at):
    if not isinstance(node, dict) or key not in node:
        raise Refusal(f"{at}: has no {key!r}; should be SQuAD v1.1's JSON")
    if not isinstance(node[key], type_) or isinstance(node[key], bool):
        raise Refusal(f"{at}.{key}: is a {type(node[key]).__name__}, should be {type_.__name__}")
    return node[key]


def _text(node, key, at):
    text = _value(node, key, str, at)
    if not text.strip():
        raise Refusal(f"{at}.{key}: is empty; should be text")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise Refusal(f"{at}.{key}: holds half of a character (a lone surrogate); fetch it again")
    return text


def _items(node, key, at):
    return [(item, f"{at}.{key}[{i}]") for i, item in enumerate(_value(node, key, list, at))]
