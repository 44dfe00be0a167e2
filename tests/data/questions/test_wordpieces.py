"""WordPieces with their offsets, by hand and in random texts; damaged vocabularies."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dawnbench_tf.data.questions import vocabulary, wordpieces
from dawnbench_tf.data.questions.vocabulary import Vocabulary
from dawnbench_tf.refusals import Refusal

PIECES = "[UNK] [CLS] [SEP] un ##aff ##able cafe ##s , - 1815 . a ##b ##c b the ' s \u4e2d".split()
VOCABULARY = Vocabulary(PIECES, [], [], pieces=True)


def cut(text, vocabulary=VOCABULARY):
    ((pieces, offsets),) = wordpieces.cut([text], vocabulary)
    parts = [text[a:b] for a, b in offsets]
    return list(zip(pieces, parts, strict=True))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Unaffable", [("un", "Un"), ("##aff", "aff"), ("##able", "able")]),
        ("caf\u00e9s, 1815", [("cafe", "caf\u00e9"), ("##s", "s"), (",", ","), ("1815", "1815")]),
        ("cafe\u0301s", [("cafe", "cafe"), ("##s", "s")]),  # decomposed: the accent is no letter's
        ("the\t\u00a0b", [("the", "the"), ("b", "b")]),
        ("a\u200bb", [("a", "a"), ("##b", "b")]),  # a control character is nothing
        ("unknown b", [("[UNK]", "unknown"), ("b", "b")]),
        ("\u4e2d\u4e2d", [("\u4e2d", "\u4e2d")] * 2),  # each a word
        ("abc's", [("a", "a"), ("##b", "b"), ("##c", "c"), ("'", "'"), ("s", "s")]),
        (" \n", []),
    ],
)
def test_by_hand(text, wanted):
    assert cut(text) == wanted


def test_a_cased_bert_keeps_case_and_accents():
    cased = Vocabulary([*PIECES[:3], "The", "caf\u00e9"], [], [], cased=True, pieces=True)
    wanted = [("The", "The"), ("[UNK]", "the"), ("caf\u00e9", "caf\u00e9")]
    assert cut("The the caf\u00e9", cased) == wanted


@settings(deadline=None)
@given(st.text(max_size=40))
def test_places_rise_and_what_lies_between_is_no_letter(text):
    ((_, offsets),) = wordpieces.cut([text], VOCABULARY)
    assert all(begin < end for begin, end in offsets)
    bounds = [0, *(offset for span in offsets for offset in span), len(text)]
    for end, begin in zip(bounds[::2], bounds[1::2], strict=True):
        assert end <= begin and all(map(is_left_out, text[end:begin]))


def is_left_out(character):
    kept = unicodedata.normalize("NFD", character.lower())
    kinds = {unicodedata.category(part) for part in kept}
    return character.isspace() or character == "\ufffd" or kinds <= {"Mn", "Cc", "Cf"}


def test_ids_are_lines_of_the_vocabulary(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[unused0]", *PIECES]) + "\n")
    read = wordpieces.read(path, cased=False)
    assert read == VOCABULARY
    assert read.ids(["[CLS]", "##s", "\u4e2d"])[0].tolist() == [3, 9, 21]


def test_a_run_s_pieces_come_back_and_need_their_signs(tmp_path):
    vocabulary.save(VOCABULARY, tmp_path)
    assert vocabulary.load(tmp_path) == VOCABULARY
    vocabulary.save(VOCABULARY._replace(trained=PIECES[1:]), tmp_path)
    with pytest.raises(Refusal, match="pieces should have .UNK., .CLS., .SEP. among those trained"):
        vocabulary.load(tmp_path)


def test_words_become_pieces():
    assert wordpieces.from_words(["The", "a", "the"]).trained == [*PIECES[:3], "a", "the"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"the\na\n", "one a line: [PAD] in line 1, [UNK], [CLS], [SEP] from line 3 on"),
        (b"[PAD]\nx\n[UNK]\n[CLS]\n", "should be the pieces of a published BERT"),
        (b"[PAD]\nx\n[UNK]\n[CLS]\n[SEP]\na\na\n", "none twice"),
        (b"[PAD]\n\xff\n", "can't be read ("),
    ],
)
def test_what_is_no_vocabulary_is_one_line(tmp_path, content, words):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(Refusal, match=re.escape(words)) as error:
        wordpieces.read(path, cased=False)
    assert "\n" not in str(error.value)


NAME = "uncased_L-2_H-128_A-2"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], f"holds no folder {NAME}, of a published BERT; see https://github.com/google-res"),
        ([f"{NAME}/vocab.txt"], f"its {NAME} holds none of model.safetensors, bert_model.ckpt"),
        ([f"{NAME}/tf_model.h5"], f"its {NAME} holds no vocab.txt"),
    ],
)
def test_what_is_missing_is_named(tmp_path, files, words):
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    with pytest.raises(Refusal, match=re.escape(words)):
        wordpieces.find(tmp_path, NAME)
