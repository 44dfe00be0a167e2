"""Questions: how contexts, questions and answers are cut, and what their words stand for."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting

BERTS = (  # as google-research/bert and Microsoft's UniLM call them
    "uncased_L-2_H-128_A-2",
    "uncased_L-4_H-256_A-4",
    "uncased_L-4_H-512_A-8",
    "uncased_L-8_H-512_A-8",
    "uncased_L-12_H-768_A-12",
    "uncased_L-24_H-1024_A-16",
    "cased_L-12_H-768_A-12",
    "cased_L-24_H-1024_A-16",
    "MiniLM-L6-H384-uncased",
)


@dataclass(frozen=True)
class Questions:
    """How texts become token ids, and batches. Raises Refusal."""

    GROUP: ClassVar[str] = "questions"
    bucket_boundaries: tuple[int, ...] = setting(
        (),
        "context lengths, in tokens, that batches are padded to, comma-separated; in training "
        "longer contexts are cut at the last, and questions whose answer lies beyond are dropped",
        low=1,
    )
    tokenizer: str = setting(
        "glove",
        "how texts are cut: glove, contractions parted as in GloVe's vocabulary and every sign "
        "alone; words, runs of letters and digits, every other sign alone; treebank, nltk's Penn "
        "Treebank, parted at dashes and quotes; spacy, which tells lemmas, parts of speech and "
        "entity types as well; wordpiece, a BERT's. treebank and spacy take packages of their own",
        choices=("glove", "words", "treebank", "spacy", "wordpiece"),
    )
    word_vectors: str = setting(
        "glove.6B.100d",
        "published vectors of words; a data set that is embedded has none, only their width",
        choices=("glove.6B.100d", "glove.840B.300d", "crawl-300d-2M"),
    )
    tuned_words: int = setting(
        0, "so many of the most frequent words of questions learn on from their vectors", low=0
    )
    learned_words: bool = setting(
        True, "frequent words without a vector learn one; if not, they are unknown"
    )
    most_question_tokens: int = setting(
        30, "in training longer questions are left out", low=1, high=1000
    )
    most_answer_tokens: int = setting(0, "tokens of an answer, at most; 0: any number", low=0)
    pretrained: str = setting(
        "",
        "published BERT that training starts from, a folder of --data_dir with its vocab.txt and "
        "its weights; a data set that is embedded has none",
        choices=("", *BERTS),
    )
    sequence_length: int = setting(
        0,
        "WordPieces that a BERT reads at once, of question and passage and three signs; longer "
        "passages are read in windows that overlap, and the best of their answers counts",
        low=0,
        high=512,
    )
    document_stride: int = setting(
        128, "WordPieces from the start of a window to that of the next", low=1
    )

    @property
    def cased(self) -> bool:
        """Whether the published BERT tells The from the."""
        return self.pretrained.startswith("cased")

    def __post_init__(self):
        check(self)
        if list(self.bucket_boundaries) != sorted(set(self.bucket_boundaries)):
            refuse("bucket_boundaries", self.bucket_boundaries, "should rise")
        of_berts = self.tokenizer == "wordpiece"
        for name, value in (
            ("pretrained", self.pretrained),
            ("sequence_length", self.sequence_length),
        ):
            if bool(value) != of_berts:
                right = "should be a BERT's, for" if of_berts else "is for"
                refuse(name, value, f"{right} --tokenizer=wordpiece; --helpfull says what it is")
        least = self.most_question_tokens + 4
        if self.sequence_length and self.sequence_length < least:
            why = f"should be {least} at least: most_question_tokens, three signs and the passage"
            refuse("sequence_length", self.sequence_length, why)
