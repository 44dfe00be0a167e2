"""Catalogue rows of readers (question answering). This module does not import TensorFlow."""

from .variant import rows

_SEO = "Seo et al. 2016, arXiv 1611.01603"
_YU = "Yu et al. 2018, arXiv 1804.09541"
_CHEN = "Chen et al. 2017, arXiv 1704.00051"
_WU = "Wu et al. 2019, arXiv 1902.11291"
_DEVLIN = "Devlin et al. 2019, arXiv 1810.04805"
_TURC = "Turc et al. 2019, arXiv 1908.08962"
_WANG = "Wang et al. 2020, arXiv 2002.10957"
_QUESTIONS = {"inputs": "questions", "num_classes": 0, "image_size": 0}
_PIECES = {**_QUESTIONS, "wordpieces": True}

ROWS = (
    *rows(
        "bidafs",
        _SEO,
        (
            ("bidaf", {}, 2_570_919, None),
            ("bidaf_50", {"hidden": 50, "character_filters": 50, "dropout": 0.0}, 715_769, None),
        ),
        _QUESTIONS,
    ),
    *rows("qanets", _YU, (("qanet", {}, 2_240_634, None),), _QUESTIONS),
    *rows("tpu_qanets", _YU, (("qanet_tpu", {}, 476_122, None),), _QUESTIONS),
    *rows(
        "berts",
        _TURC,
        (
            ("bert_tiny_span", {"layers": 2, "hidden": 128, "heads": 2}, 4_369_666, None),
            ("bert_mini_span", {"layers": 4, "hidden": 256, "heads": 4}, 11_105_282, None),
            ("bert_small_span", {"layers": 4, "hidden": 512, "heads": 8}, 28_502_018, None),
            ("bert_medium_span", {"layers": 8, "hidden": 512, "heads": 8}, 41_111_554, None),
        ),
        _PIECES,
    ),
    *rows(
        "berts",
        _WANG,
        (("minilm_span", {"layers": 6, "hidden": 384, "heads": 12}, 22_566_146, None),),
        _PIECES,
    ),
    *rows(
        "berts",
        _DEVLIN,
        (
            ("bert_base_span", {}, 108_893_186, None),
            (
                "bert_large_span",
                {"layers": 24, "hidden": 1024, "heads": 16},
                334_094_338,
                None,
            ),
        ),
        _PIECES,
    ),
    *rows("drqas", _CHEN, (("drqa", {}, 4_116_501, None),), _QUESTIONS),
    *rows("fastfusionnets", _WU, (("fastfusionnet", {}, 5_761_403, None),), _QUESTIONS),
)
