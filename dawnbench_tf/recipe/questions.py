"""Questions: tokenization, vocabulary and batching of question answering on texts."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, documented, setting

_WORDS = "tokenizer=glove,words,treebank,spacy"


@documented
@dataclass(frozen=True)
class Questions:
    """Settings for turning texts into batches of token ids. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "questions"
    bucket_boundaries: tuple[int, ...] = setting(
        (),
        "context lengths, in tokens, that batches are padded to, comma-separated; in training, "
        "contexts are cut at the last, and questions whose answer lies beyond it are dropped",
        low=1,
    )
    tokenizer: str = setting(
        "glove",
        "tokenizer: glove (contractions split as in GloVe's vocabulary, each punctuation sign a "
        "token), words (runs of letters and digits, each other sign a token), treebank (nltk's "
        "Penn Treebank, split further at dashes and quotes), spacy (which also tags lemmas, parts "
        "of speech and entity types) or wordpiece (BERT's); treebank and spacy require "
        "dawnbench_tf[tokenizers]",
        choices=("glove", "words", "treebank", "spacy", "wordpiece"),
    )
    word_vectors: str = setting(
        "glove.6B.100d",
        "pretrained word vectors, read from --data_dir; an embedded data set uses only their "
        "width; none: no file, 100 numbers a word, all learned",
        choices=("glove.6B.100d", "glove.840B.300d", "crawl-300d-2M", "none"),
        needs=_WORDS,
    )
    tuned_words: int = setting(
        0,
        "number N of word vectors that are fine-tuned: those of the N most frequent words of "
        "questions; all other pretrained vectors stay fixed; without any, as in an embedded data "
        "set or with --word_vectors=none, all are learned",
        needs=_WORDS,
    )
    learned_words: bool = setting(
        True,
        "learn vectors for frequent words without a pretrained one; if not, these words are "
        "unknown tokens; without pretrained vectors all are learned",
        needs=_WORDS,
    )
    most_question_tokens: int = setting(
        30,
        "maximum question length in tokens: longer questions are left out of training",
        low=1,
        high=1000,
    )
    most_answer_tokens: int = setting(
        0, "maximum length of a predicted answer in tokens; 0: no limit"
    )
    sequence_length: int = setting(
        0,
        "BERT's input length in WordPieces: question, passage and three special tokens; longer "
        "passages are split into overlapping windows, and the best answer of all windows is used",
        high=512,
    )
    document_stride: int = setting(
        128,
        "distance between the starts of two consecutive windows, in WordPieces",
        low=1,
        needs="tokenizer=wordpiece",
    )
    proxy: ClassVar[str] = ""
    hardest: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check(self)
        if list(self.bucket_boundaries) != sorted(set(self.bucket_boundaries)):
            refuse("bucket_boundaries", self.bucket_boundaries, "should increase")
        wordpiece = self.tokenizer == "wordpiece"
        if bool(self.sequence_length) != wordpiece:
            reason = "is required for" if wordpiece else "is for"
            expected = f"{reason} --tokenizer=wordpiece; --helpfull describes it"
            refuse("sequence_length", self.sequence_length, expected)
        shortest = self.most_question_tokens + 4  # [CLS], two [SEP], a WordPiece of the passage
        if self.sequence_length and self.sequence_length < shortest:
            expected = f"should be at least most_question_tokens + 4 = {shortest}"
            refuse("sequence_length", self.sequence_length, expected)
