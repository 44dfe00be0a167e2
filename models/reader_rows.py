"""The catalogue's readers, of questions on contexts: rows of plain data, no TensorFlow here."""

from .variants import rows

_SEO = "Seo et al. 2016, arXiv 1611.01603"
_YU = "Yu et al. 2018, arXiv 1804.09541"
_CHEN = "Chen et al. 2017, arXiv 1704.00051"
_WU = "Wu et al. 2019, arXiv 1902.11291"
_QUESTIONS = {"inputs": "questions", "num_classes": 0, "image_size": 0}

ROWS = (
    *rows(
        "readers",
        _SEO,
        (
            ("bidaf", {}, 2_570_919, None),
            ("bidaf_50", {"hidden": 50, "character_filters": 50, "dropout": 0.0}, 715_769, None),
        ),
        _QUESTIONS,
    ),
    *rows("qanets", _YU, (("qanet_tpu", {}, 476_122, None),), _QUESTIONS),
    *rows("drqas", _CHEN, (("drqa", {}, 4_110_357, None),), _QUESTIONS),
    *rows("fusion_readers", _WU, (("fastfusionnet", {}, 5_761_403, None),), _QUESTIONS),
)
