"""SQuAD's JSON: parsing, and one-line refusals that name the key."""

import copy
import json
import re

import pytest

from dawnbench_tf.data.questions import squad_json
from dawnbench_tf.refusals import Refusal

QA = {"id": "q1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
GOOD = {
    "version": "1.1",
    "data": [{"title": "t", "paragraphs": [{"context": "Ada was here.", "qas": [QA]}]}],
}


def changed(*path, value=None, remove=False):
    whole = copy.deepcopy(GOOD)
    node = whole
    for key in path[:-1]:
        node = node[key]
    if remove:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return json.dumps(whole).encode()


FIRST = ("data", 0, "paragraphs", 0)


def test_everything_is_read():
    corpus = squad_json.parse("f", json.dumps(GOOD).encode())
    question = squad_json.Question("q1", "Who?", 0, (("Ada", 0),))
    assert corpus == squad_json.Corpus(["Ada was here."], [question])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "f: not JSON"),
        (b"\xff\xfe\x00", "f: not JSON"),
        (b"[" * 100_000, "f: not JSON"),
        (b"[]", "f: has no 'data'; should be SQuAD v1.1's JSON"),
        (changed("data", value=[]), "f: holds no question"),
        (changed("data", value={}), "f.data: is a dict, should be list"),
        (changed(*FIRST, "context", remove=True), "f.data[0].paragraphs[0]: has no 'context'"),
        (changed(*FIRST, "context", value=" "), "f.data[0].paragraphs[0].context: is empty"),
        (changed(*FIRST, "context", value=3), "paragraphs[0].context: is a int, should be str"),
        (changed(*FIRST, "qas", 0, "id", remove=True), "qas[0]: has no 'id'"),
        (changed(*FIRST, "qas", value=[QA, QA]), "qas[1].id: 'q1' is there twice"),
        (changed(*FIRST, "qas", 0, "answers", value=[]), "qas[0].answers: is empty"),
        (changed(*FIRST, "qas", 0, "is_impossible", value=True), "this is SQuAD v2; should be"),
        (changed(*FIRST, "qas", 0, "answers", 0, "answer_start", value=""), "str, should be int"),
    ],
)
def test_what_is_no_squad_is_refused_in_one_line(content, words):
    with pytest.raises(Refusal, match=re.escape(words)) as error:
        squad_json.parse("f", content)
    assert "\n" not in str(error.value)


def test_a_file_of_empty_lists_is_refused_before_it_fills_the_memory():
    content = b'{"data": [' + b"[]," * 5_000_000 + b"1]}"
    with pytest.raises(Refusal, match="squad: holds more lists and objects than SQuAD"):
        squad_json.parse("squad", content)
