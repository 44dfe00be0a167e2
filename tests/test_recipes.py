"""Recipes: bounds, names, evidence as published."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Published
from dawnbench_tf.refusals import Refusal

PUBLISHED = Path(__file__).parent / "fixtures/published"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"batch_size": 0}, "--batch_size=0: should be at least 1"),
        ({"batch_size": 1298}, "--batch_size=1298: should be at most digits's 1297 examples"),
        ({"epochs": -1}, "--epochs=-1: should be over 0"),
        ({"learning_rate": float("nan")}, "--learning_rate=nan: should be a finite number"),
        ({"threshold": 100.5}, "--threshold=100.5: top1Accuracy should be over 0, at most 100"),
        ({"learning_rate": 0.0}, "--learning_rate=0.0: should be over 0"),
        ({"schedule_factors": (0, 0, 0)}, "--schedule_factors=0,0,0: one of them should be over 0"),
        ({"threshold": 0}, "--threshold=0: top1Accuracy should be over 0, at most 100"),
        ({"optimizer": "lamb"}, "--optimizer=lamb: should be one of sgd, lars, adam"),
        ({"schedule_epochs": (2, 1, 3)}, "--schedule_epochs=2,1,3: should rise"),
        (
            {"schedule_epochs": (1,)},
            "--schedule=linear: takes a factor for each of schedule_epochs; found 1",
        ),
        ({"standardize": "channel"}, "--standardize=channel: takes three figures each"),
        ({"lookahead": True}, "--lookahead=true: should have --average as well"),
        ({"average_every": 5}, "--average_every=5: should have --average as well"),
        ({"test_views": "two"}, "--test_views=two: should be one of image, mirror, mirror_and"),
        ({"bucket_boundaries": (8,)}, "--bucket_boundaries=8: is for questions; digits has images"),
    ],
)
def test_what_is_out_of_range_is_refused_by_its_flag(change, line):
    with pytest.raises(Refusal, match="^" + line.replace("(", r"\(")):
        replace(recipes.get("digits/resnet8"), **change)


def test_what_is_for_images_is_refused_for_questions():
    with pytest.raises(Refusal, match="^--pad=2: is for images of one size; qa_mini has questions"):
        recipes.get("qa_mini/bidaf", pad=2)
    with pytest.raises(Refusal, match="^--flip=true: is for images; qa_mini has questions"):
        recipes.get("qa_mini/bidaf", flip=True)


def test_what_is_for_jpegs_is_refused_for_images_of_one_size_and_the_other_way_round():
    with pytest.raises(Refusal, match="^--image_sizes=64: is for JPEGs; digits has images"):
        recipes.get("digits/resnet8", image_sizes=(64,))
    with pytest.raises(Refusal, match="^--cutout=8: is for images of one size; imagenette has JPE"):
        recipes.get("imagenette/resnet18", cutout=8)
    for value, text in (((2.5, 9), "2.5,9"), ((2,), "2"), ((0, 9), "0,9")):
        with pytest.raises(
            Refusal, match=f"^--rand_augment={text}: should be a whole number of op"
        ):
            recipes.get("imagenette/resnet18", rand_augment=value)
    with pytest.raises(Refusal, match="^--image_size_epochs=2,3: should be one fewer than the 2"):
        recipes.get("imagenette/resnet18", image_sizes=(64, 96), image_size_epochs=(2, 3))


def test_an_unknown_recipe_is_answered_with_the_nearest():
    with pytest.raises(Refusal, match="did you mean cifar10/resnet56_tf?"):
        recipes.get("cifar10/resnet56")


def test_evidence_is_what_the_published_files_say():
    items = [(row, item) for row in recipes.rows().values() for item in row.evidence]
    published = [(row, item) for row, item in items if isinstance(item, Published)]
    assert len(published) == 9
    for recipe, item in published:
        path = PUBLISHED / Path(item.entry).name
        task = recipe.task_row
        with open(path.with_suffix(".tsv"), encoding="utf-8") as file:
            rows = [
                {name: float(value) for name, value in row.items()}
                for row in csv.DictReader(file, delimiter="\t")
            ]
        first = next(row for row in rows if row[task.metric] >= task.threshold)
        assert item.hours == round(first["hours"], 4)
        assert item.best == round(max(row[task.metric] for row in rows), 4)
        assert item.hardware == json.loads(path.read_text())["hardware"]
        if task.inputs == "images":  # the reader's "epochs" are of 1,000 steps
            assert recipe.epochs == round(rows[-1]["epoch"])


def test_the_list_names_every_recipe_and_its_evidence():
    table = recipes.table()
    assert all(name in table for name in recipes.rows())
    assert "published: 10.0457 h, best 94.31, 1 K80" in table


TF = {"batch_size": 128, "momentum": 0.9, "weight_decay": 5e-4, "pad": 2, "standardize": "image"}
TORCH = {
    "batch_size": 128,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "decays": "all",
    "pad": 4,
    "channel_mean": (0.4914, 0.4822, 0.4465),
    "channel_deviation": (0.2023, 0.1994, 0.2010),
}
BIDAF = {"batch_size": 60, "average": 0.999, "epsilon": 1e-8, "schedule": "constant"}
PAGE = {  # dawn.py
    "epochs": 24,
    "batch_size": 512,
    "drop_remainder": True,
    "momentum": 0.9,
    "nesterov": True,
    "rate_in_velocity": False,  # torch.optim.SGD
    "weight_decay": 5e-4,
    "decays": "all",
    "pad": 4,
    "pad_mode": "reflection",
    "flip": True,
    "cutout": 8,
    "channel_mean": (0.4914, 0.4822, 0.4465),
    "channel_deviation": (0.2471, 0.2435, 0.2616),
}
PAGE_10 = {  # new_dawn.py
    **PAGE,
    "epochs": 10,
    "rate_in_velocity": True,  # torch_backend.py's nesterov_update
    "shift_rate": 64,
    "label_smoothing": 0.2,
    "average": 0.99,
    "average_every": 5,
    "lookahead": False,
    "cutout": 0,
    "test_views": "mirror",
}
AIRBENCH94 = {  # legacy/airbench94.py
    "epochs": 9.9,
    "batch_size": 1024,
    "drop_remainder": True,
    "momentum": 0.85,
    "nesterov": True,
    "rate_in_velocity": False,  # torch.optim.SGD
    "decays": "all",
    "shift_rate": 64,
    "whitening_bias_epochs": 3,
    "label_smoothing": 0.2,
    "average": 0.95,
    "average_every": 5,
    "lookahead": True,
    "pad": 2,
    "pad_mode": "reflection",
    "flip": True,
    "alternating_flip": True,
    "cutout": 0,
    "channel_mean": (0.4914, 0.4822, 0.4465),
    "channel_deviation": (0.2470, 0.2435, 0.2616),
    "test_views": "mirror_and_shifts",
}
RESNET50 = {  # tensorflow/tpu, models/official/resnet
    "model": "resnet50_v1_5",
    "optimizer": "sgd",
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "decays": "kernels",
    "zero_last_norm": True,
    "smallest_crop": 0.08,
    "flip": True,
    "channel_mean": (0.485, 0.456, 0.406),
    "channel_deviation": (0.229, 0.224, 0.225),
}
BAG_OF_TRICKS = {**RESNET50, "label_smoothing": 0.1, "schedule": "cosine"}  # arXiv 1812.01187
STATED = {  # read off the seeds' code and READMEs, not off our rows
    "cifar10/resnet20_tf": TF,
    "cifar10/resnet56_tf": TF,
    "cifar10/resnet164_nb_tf": TF,
    "cifar10/resnet164_b_tf": TF,
    "cifar10/resnet56_proj": TORCH,
    "cifar10/resnet110_proj": TORCH,
    "cifar10/resnet110_stochastic": TORCH,
    "cifar10/preact164": TORCH,
    "cifar10/preact164_basic": TORCH,
    "cifar10/resnet9_24ep": PAGE,
    "cifar10/resnet9_10ep": PAGE_10,
    "cifar10/airbench94": AIRBENCH94,
    "cifar10/airbench94_12ep": {**AIRBENCH94, "epochs": 12},
    "cifar10/airbench96": {**AIRBENCH94, "epochs": 37, "pad": 4, "cutout": 12},
    "imagenet/resnet50_v1_5": {**BAG_OF_TRICKS, "epochs": 90},
    "imagenet/resnet50d": {**BAG_OF_TRICKS, "model": "resnet50d", "epochs": 120},
    "imagenet/resnet26d": {**BAG_OF_TRICKS, "model": "resnet26d", "epochs": 120},
    "imagenet/resnet50_lars": {
        **RESNET50,
        "optimizer": "lars",
        "batch_size": 32768,
        "epochs": 91,  # 3,558 steps
        "learning_rate": 34,
        "label_smoothing": 0.1,
        "trust": 0.001,
    },
    "imagenet/resnet50_tpu": {**RESNET50, "batch_size": 1024, "label_smoothing": 0},
    "imagenet/resnet50_progressive": {
        **RESNET50,
        "batch_size": 1024,
        "image_sizes": (128, 224, 288),
        "image_size_epochs": (18, 41),
    },
    "imagenet/resnet152_dawn": {"model": "resnet152_v1", "momentum": 0.9, "epochs": 113},
    "squad/bidaf_tf": {**BIDAF, "optimizer": "adam", "learning_rate": 0.001},
    "squad/bidaf_paper": {**BIDAF, "optimizer": "adadelta", "learning_rate": 0.5, "epochs": 12},
}
RATES = {  # epoch (from 0) to learning rate
    "cifar10/resnet20_tf": {0: 0.01, 1: 0.1, 90: 0.1, 91: 0.01, 135: 0.01, 136: 0.001, 180: 0.001},
    "cifar10/resnet56_proj": {4: 0.01, 5: 0.1, 94: 0.1, 95: 0.01, 140: 0.001, 184: 0.001},
    "cifar10/preact164": {0: 0.01, 1: 0.1, 90: 0.1, 91: 0.01, 136: 0.001},
    "cifar10/resnet9_24ep": {0: 0, 1: 0.08, 5: 0.4, 24: 0},
    "cifar10/resnet9_10ep": {0: 0, 1: 0.5, 2: 1, 5: 0.55, 8: 0.1, 10: 0.1},
    # In the rates of the entries' misc, and of resnet_benchmark.py; scaled from 256 to the batch.
    "imagenet/resnet50_tpu": {
        0: 0,
        1: 0.08,
        4: 0.32,
        5: 0.4,
        29: 0.4,
        31: 0.04,
        61: 0.004,
        81: 4e-4,
    },
    "imagenet/resnet50_progressive": {0: 0, 2: 0.2, 4: 0.4, 20: 0.4, 22: 0.04, 36: 4e-3, 44: 4e-4},
    "imagenet/resnet50_v1_5": {0: 0, 5: 0.1, 47.5: 0.05, 90: 0},
    "imagenet/resnet50_lars": {0: 0, 6: 17, 12: 34, 51.5: 8.5, 91: 0},
    "imagenet/resnet152_dawn": {0: 0.1, 29: 0.1, 30: 0.01, 60: 0.001, 90: 1e-4},
    "cifar10/airbench94": {0: 0.3, 9.9: 0.105},  # 11.5 / (1 + 1 / 0.15) of the mean loss: 1.5
}


@pytest.mark.parametrize("name", STATED)
def test_settings_are_those_of_the_source(name):
    recipe = recipes.get(name)
    assert {key: getattr(recipe, key) for key in STATED[name]} == STATED[name]


def test_every_recipe_of_a_published_entry_is_held_to_its_source():
    rows = recipes.rows().values()
    assert {row.name for row in rows if row.task_row.benchmark} == set(STATED)


@pytest.mark.parametrize("name", RATES)
def test_the_rate_falls_when_the_source_s_did(name):
    from dawnbench_tf.training import optimizers

    recipe = recipes.get(name)
    factor = optimizers.factor(recipe, steps_per_epoch=391)
    scale = recipe.batch_size / (recipe.scale_learning_rate_from or recipe.batch_size)
    for epoch, rate in RATES[name].items():
        scaled = recipe.learning_rate * scale * float(factor(epoch * 391))
        assert scaled == pytest.approx(rate, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "rate", "decay", "warmup", "last"),
    [
        ("cifar10/airbench94", 11.5, 0.0153, 0.23, 0.07),
        ("cifar10/airbench96", 9, 0.012, 0.1, 0),
    ],
)
def test_airbench_s_rates_are_its_source_s(name, rate, decay, warmup, last):
    """What PyTorch's optimizer is given there, for the sum of the losses of 1,024 images."""
    from dawnbench_tf.training import optimizers

    recipe, steps = recipes.get(name), 48
    kilostep_scale = 1024 * (1 + 1 / (1 - 0.85))
    lr, wd = rate / kilostep_scale, decay * 1024 / kilostep_scale
    assert recipe.learning_rate == pytest.approx(lr * 1024)
    assert recipe.weight_decay == pytest.approx(wd / lr / 1024)
    factor, total = optimizers.factor(recipe, steps), recipe.steps(steps)
    for step in (0, 30, 150, 300, total - 1):
        if step < warmup * total:
            share = step / (warmup * total)
            wanted = 0.2 * (1 - share) + share
        else:
            share = (step - warmup * total) / (total - warmup * total)
            wanted = (1 - share) + last * share
        assert float(factor(step)) == pytest.approx(wanted, abs=0.005)  # of whole steps there


def test_zero_last_norm_is_refused_where_no_such_norm_is():
    import tensorflow as tf

    from dawnbench_tf.data import inputs

    recipe = recipes.get("digits/resnet8", zero_last_norm=True)
    here = inputs.Placement(tf.distribute.get_strategy())
    with pytest.raises(
        Refusal, match="^--zero_last_norm=true: .* has none; ResNets for ImageNet have"
    ):
        inputs.of(recipe.task_row).network(None, recipe, here)
