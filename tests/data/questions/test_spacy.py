"""spaCy's annotations reach a reader's inputs; a stand-in replaces spaCy."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data import qa_mini
from dawnbench_tf.data.questions import encoding, tokens
from dawnbench_tf.data.questions.data import QuestionData
from dawnbench_tf.data.questions.squad_json import Corpus, Question
from dawnbench_tf.models import texts
from dawnbench_tf.recipe import Questions
from dawnbench_tf.refusals import Refusal

LEMMAS = {"wrote": "write", "writes": "write", "Notes": "note"}
PARTS = {"Ada": "NNP", "wrote": "VBD", "Notes": "NNS", "odd": "NO-SUCH-TAG"}
CONTEXT = "Ada\nwrote Notes ada odd"


class StandIn:
    """A stand-in for spaCy's pipeline that splits at spaces."""

    meta = {"name": "stand_in", "version": "1", "spacy_version": "3"}

    def pipe(self, texts):
        for text in texts:
            offset, tokens = 0, []
            for word in text.split(" "):
                tags = {"tag_": PARTS.get(word, "NN"), "ent_type_": "PERSON" if offset == 0 else ""}
                lemma = LEMMAS.get(word, word.lower())
                tokens.append(SimpleNamespace(idx=offset, text=word, lemma_=lemma, **tags))
                offset += len(word) + 1
            yield tokens


@pytest.fixture
def spacy(monkeypatch):
    tokens._pipeline.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name: StandIn()))
    yield
    tokens._pipeline.cache_clear()


def test_ids_of_tags_fill_the_network_s_tables():
    for ids, count in zip((tokens.PART_IDS, tokens.ENTITY_IDS), texts.TAGS, strict=True):
        assert sorted(ids.values()) == list(range(1, count))


def test_lemmas_and_tags_come_with_each_token(spacy):
    form = Questions(tokenizer="spacy")
    corpus = Corpus([CONTEXT], [Question("q", "Who writes notes", 0, (("Notes", 10),))])
    words = {}
    split = encoding.encode(corpus, words, form.tokenizer)
    assert list(words)[:5] == ["Ada", "wrote", "Notes", "ada", "odd"]
    assert split.spans.values.tolist() == [[2, 2]]
    vocab = encoding.build_vocabulary(split, list(words), {}, form)
    encoded = encoding.assemble(split, split, corpus, list(words), {}, vocab, form)
    recipe = recipes.get("qa_mini/drqa", tokenizer="spacy")
    _, matches, tags, question = QuestionData(recipe, encoded, None).examples()[0]
    share = [0.4, 0.2, 0.2, 0.4, 0.2]  # Ada and ada are one
    lemma = [0, 1, 0, 0, 0]  # wrote, of writes; the question's notes has a lemma of its own
    lower = [0, 0, 1, 0, 0]
    np.testing.assert_allclose(matches[0], np.transpose([[0] * 5, lower, lemma, share]))
    parts = [tokens.PART_IDS[tag] for tag in ("NNP", "VBD", "NNS", "NN")]
    assert tags[0].T.tolist() == [[*parts, 0], [15, 1, 1, 1, 1]]
    assert question.shape == (1, 3)


def test_a_whole_data_set_is_cut_by_it(spacy):
    data = qa_mini.generate(12, 6, seed=1, form=Questions(tokenizer="spacy"))
    assert data.train.context_tags.values.min() > 0
    assert data.train.context_tags.bounds.tolist() == data.train.contexts.bounds.tolist()


def test_a_model_of_spacy_that_is_not_installed_is_one_line(monkeypatch):
    tokens._pipeline.cache_clear()

    def load(name):
        raise OSError("[E050] Can't find model")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    with pytest.raises(Refusal, match="its model en_core_web_md is not installed; python -m spacy"):
        tokens.version("spacy")
