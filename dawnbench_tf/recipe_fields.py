"""The fields of a recipe that only some kinds of examples have: images, JPEGs, questions."""

from dataclasses import dataclass

from dawnbench_tf.settings import setting

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
class OfImages:
    """How images are varied in training, and seen."""

    flip: bool = setting(False, "training images: mirror half of them")
    alternating_flip: bool = setting(
        False, "with flip: an image that is mirrored in one epoch is not in the next"
    )
    standardize: str = setting(
        "image",
        "images to mean 0, deviation 1: by each image's own figures, or by channel_mean and "
        "channel_deviation",
        choices=("image", "channel"),
    )
    channel_mean: tuple[float, ...] = setting(
        (), "mean of each channel, of pixels in 0..1", low=0, high=1
    )
    channel_deviation: tuple[float, ...] = setting(
        (), "standard deviation of each channel", low=0.001, high=1
    )
    test_views: str = setting(
        "image",
        "test images are seen as they are; with their mirror; or with it and, each with its "
        "mirror, moved by a pixel up and left, and down and right: mean logits, the image and its "
        "mirror counting half",
        choices=("image", "mirror", "mirror_and_shifts"),
    )


@dataclass(frozen=True)
class OfOneSize:
    """Of images that come in the network's own size."""

    final_survival: float = setting(
        0.0,
        "stochastic depth, in CIFAR ResNets: survival probability of the last unit, from 1 at the "
        "first; 0: the network's own",
        low=0,
        high=1,
    )
    held_out: int = setting(
        0,
        "training examples, the last so many, that are not trained on: the finished model is "
        "tested on them as well, once",
        low=0,
    )

    pad: int = setting(
        0, "training images: pad by so many pixels a side, then crop at random", low=0, high=31
    )
    pad_mode: str = setting(
        "zeros", "what pad adds: zeros, or the image reflected", choices=("zeros", "reflection")
    )
    cutout: int = setting(
        0,
        "training images: a square of this side, at random, becomes the mean color",
        low=0,
        high=31,
    )


@dataclass(frozen=True)
class OfJpegs:
    """Of images of any size."""

    image_sizes: tuple[int, ...] = setting(
        (),
        "JPEGs: sides of training images in pixels, comma-separated, each until its epoch in "
        "image_size_epochs; default: the task's own",
        low=8,
        high=2048,
    )
    image_size_epochs: tuple[int, ...] = setting(
        (), "epochs at which image_sizes change, comma-separated", low=1
    )
    test_image_size: int = setting(
        0, "JPEGs: sides of test images in pixels; 0: the last of image_sizes", low=0, high=2048
    )
    rectangular_test: bool = setting(
        False,
        "JPEGs: a test image is as wide, or as high, as the mean of its batch, for which images of "
        "like shape are put together; in `infer` it is square",
    )
    smallest_crop: float = setting(
        0.08,
        "JPEGs: training sees crops of this share of an image's area at least, resized",
        low=0.01,
        high=1,
    )
    rand_augment: tuple[float, ...] = setting(
        (),
        "JPEGs: RandAugment's number of operations, and their magnitude from 0 to 10, "
        "comma-separated, e.g. 2,9",
        low=0,
        high=10,
    )
    color_shift: tuple[float, ...] = setting(
        (),
        "JPEGs: brightness and chroma of training images are moved by up to these shares of their "
        "range, comma-separated, e.g. 0.125,0.1",
        low=0,
        high=1,
    )


@dataclass(frozen=True)
class OfQuestions:
    """How contexts, questions and answers are cut, and what their words stand for."""

    bucket_boundaries: tuple[int, ...] = setting(
        (),
        "questions come in batches with passages of like length, filled up to these numbers of "
        "words, comma-separated; in training longer ones than the last are cut there, and "
        "questions whose answer lies beyond are left out",
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
