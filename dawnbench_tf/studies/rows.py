"""The studies of the DAWNBench papers, at two scales: "small" (embedded digits) and "paper".

Sources: Coleman et al. 2017, "DAWNBench: An End-to-End Deep Learning Benchmark and Competition",
figures 1 to 7; Coleman et al. 2019, "Analysis of DAWNBench", for trials and generalization.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dawnbench_tf.studies.grid import Factor, Level, Study, times

SCALES = ("small", "paper")


def _each(field: str, values: Sequence[Any]) -> Factor:
    """Returns a factor with a level for each value of one field."""
    return Factor(field.replace("_", " "), tuple(Level("", {field: value}) for value in values))


def _devices(flag: str, counts: Sequence[int]) -> Factor:
    """Returns a factor of device counts, set by a flag; the first is 1. Each has the price."""
    levels = [Level("1", {} if flag == "logical_cpus" else {flag: 1})]
    for count in counts[1:]:
        price = times(count, "cost_per_hour")
        settings = {"strategy": "mirrored", flag: count, "cost_per_hour": price}
        levels.append(Level(f"{count}", settings))
    return Factor("devices", tuple(levels))


def _with(name: str, label: str, settings: dict[str, Any]) -> Factor:
    """Returns a factor with two levels: without and with an optimization."""
    return Factor(name, (Level("-", {}), Level(label, settings)))


_OWN = Level("the recipe's own", {})
_ADAM = [
    Level(f"Adam, {rate:g}", {"optimizer": "adam", "learning_rate": rate})
    for rate in (0.0001, 0.001, 0.01, 0.1)
]
_MUON = Level(
    "Muon, 0.02",
    {"optimizer": "muon", "learning_rate": 0.02, "momentum": 0.95}
    | {"nesterov": True, "sgd_rate": 5.0},
)

_NETWORKS = ("resnet8_v1_pad", "resnet20_v1_pad", "resnet32_v1_pad")
_ENDS = (Level("to the threshold", {}), Level("all epochs", {"threshold": 100}))

_study = partial(Study, recipe="digits/resnet8", trials=3)

BATCH_SIZE = _study(
    name="batch_size",
    question="What does the batch size do to convergence, to throughput, and to time to accuracy?",
    source="Figure 1",
    # A run has one batch size, also of a recipe in which it grows.
    settings={"scale_learning_rate_from": times(1, "batch_size"), "later_batch_sizes": ()},
    factors=(_each("batch_size", [times(n, "batch_size") for n in (0.25, 0.5, 1, 2, 4, 8, 16)]),),
    figure="tradeoff",
)
OPTIMIZER = _study(
    name="optimizer",
    question="Does an adaptive optimizer reach the accuracy, and sooner?",
    source="Figure 2",
    factors=(Factor("optimizer", (_OWN, *_ADAM, _MUON)),),
    figure="curves",
)
FACTORS = _study(
    name="factors",
    question="Do optimizations compose: is the speed-up of all the product of each one's?",
    source="Figures 3 and 4",
    settings={"model": "resnet20_v1_pad", "synchronized_batch_norm": False},
    factors=(
        _with("stochastic depth", "SD", {"final_survival": 0.5}),
        _with("devices", "2 devices", {"strategy": "mirrored", "logical_cpus": 2}),
        _with("batch size", "batch x4", {"batch_size": times(4, "batch_size")}),
    ),
    thresholds=(95, 98),
    figure="factors",
)
LATENCY = _study(
    name="latency",
    question="What does a model that trains sooner cost at inference?",
    source="Figure 5",
    factors=(_each("model", _NETWORKS),),
    trials=1,
    latency=True,
    figure="latency",
)
DEPTH = _study(
    name="depth",
    question="Which depth is the fastest to which accuracy?",
    source="Figure 6",
    factors=(_each("model", _NETWORKS),),
    thresholds=(90, 95, 98, 99),
    figure="curves",
)
SCALING = _study(
    name="scaling",
    question="What do more devices bring, and what do they cost?",
    source="Figure 7",
    factors=(_devices("logical_cpus", (1, 2)),),
    figure="scaling",
)
TRIALS = _study(
    name="trials",
    question="How much of time to accuracy is luck?",
    source="Coleman et al. 2019, variation over trials",
    trials=20,
    figure="distribution",
)
GENERALIZATION = _study(
    name="generalization",
    question="Does a model that was stopped at the threshold do as well on examples never used?",
    source="Coleman et al. 2019, generalization",
    settings={"held_out": 300},
    factors=(Factor("training", _ENDS),),
    trials=5,
    figure="generalization",
)
PRECISION = _study(
    name="precision",
    question="Does a lower precision reach the accuracy, and sooner?",
    source="section 1",
    factors=(_each("precision", ("float32", "mixed_bfloat16")),),
)

_SMALL = (
    *(BATCH_SIZE, OPTIMIZER, FACTORS, LATENCY, DEPTH, SCALING, TRIALS, GENERALIZATION, PRECISION),
)

# The same studies at the paper's scale: ResNet-56 and ResNet-110, 185 epochs, K80s and P100s.
_RESNET56, _FAST = "cifar10/resnet56_proj", "cifar10/airbench94_12ep"
_MODELS = [f"cifar10/{m}_tf" for m in ("resnet20", "resnet56", "resnet164_b", "resnet164_nb")]
_DEPTHS = [f"resnet{n}_v1_proj" for n in (20, 32, 44, 56, 110)]
_PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
_FOUR_GPUS = _with("devices", "4 GPUs", {"strategy": "mirrored", "num_gpus": 4})
_PAPER_ENDS = (
    Level("fast, to 93 %", {"recipe": _FAST, "threshold": 93}),
    Level("fast, all epochs", {"recipe": _FAST, "threshold": 100}),
    Level("standard, all epochs", {"recipe": _RESNET56, "threshold": 100}),
)
_paper = partial(replace, recipe=_RESNET56)
_PAPER = (
    _paper(BATCH_SIZE, thresholds=(93,)),
    _paper(OPTIMIZER, thresholds=(93,)),
    _paper(
        FACTORS,
        recipe="cifar10/resnet110_proj",
        settings={"synchronized_batch_norm": False},
        factors=(FACTORS.factors[0], _FOUR_GPUS, FACTORS.factors[2]),
        thresholds=(93, 94),
    ),
    _paper(LATENCY, recipe=_MODELS[1], factors=(_each("recipe", _MODELS),), thresholds=(91, 93)),
    _paper(DEPTH, factors=(_each("model", _DEPTHS),), thresholds=(91.8, 93, 94, 94.4)),
    _paper(SCALING, factors=(_devices("num_gpus", (1, 2, 4, 8)),), thresholds=(92.5,)),
    _paper(TRIALS, recipe=_FAST),
    _paper(GENERALIZATION, settings={"held_out": 5000}, factors=(Factor("training", _PAPER_ENDS),)),
    _paper(PRECISION, factors=(_each("precision", _PRECISIONS),), thresholds=(93,)),
)

STUDIES = {
    scale: {study.name: study for study in studies}
    for scale, studies in zip(SCALES, (_SMALL, _PAPER), strict=True)
}
