"""Properties of every recipe."""

import runpy
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset, qa_mini
from dawnbench_tf.data.images.scores import SCORES
from dawnbench_tf.models import networks, texts
from dawnbench_tf.tasks import TASKS
from dawnbench_tf.training import fitting, losses
from tests import warm
from tests.smallest import smallest

NAMES = sorted(recipes.rows())
ROOT = Path(__file__).parents[2]
KERNELS = runpy.run_path(str(ROOT / "scripts/device_kernels.py"))
SPLITS = {  # small ones will do
    "images": dataset.open(replace(recipes.get("digits/resnet8"), synthetic="decoded")).splits,
    "questions": dataset.open(replace(recipes.get("qa_mini/bidaf"), synthetic="decoded")).splits,
}
FEW = qa_mini.generate(60, 60, seed=1, form=recipes.get("squad/bert_tiny").data)


def test_every_row_of_a_module_is_a_recipe_of_its_own():
    rows = [row for module in recipes._modules() for row in recipes._rows_of(module)]
    assert len({row.name for row in rows}) == len(rows) == len(recipes.rows())
    assert all(recipes.get(row.name) == row for row in rows)


def test_a_recipe_names_a_task_a_model_a_score_and_a_loss_there_are():
    for name in NAMES:
        recipe = recipes.get(name)
        assert recipe.name == name == f"{recipe.task}/{name.partition('/')[2]}"
        assert recipe.model in models.names(), name
        assert recipe.schedule.epochs == () or recipe.schedule.epochs[-1] <= recipe.epochs, name


def test_a_task_s_columns_are_scored_and_every_field_that_it_requires_is_a_recipe_s():
    for task in TASKS.values():
        assert task.columns[:2] == ("epoch", "hours") and 0 < task.threshold <= task.highest
        assert task.inputs == "questions" or task.scoring in SCORES


def parts(name):
    """Returns the components of a recipe's train step: its kind of network, its update settings."""
    recipe = recipes.get(name)
    variant = models.get(recipe.model)
    network = [variant.family]
    if variant.inputs == "images":
        network += sorted(map(repr, smallest(recipe.model).items()))
    update = {
        "optimizer": recipe.optimizer.name,
        "average": recipe.average.decay > 0,
        "lookahead": recipe.average.lookahead,
        "clip_norm": recipe.optimizer.clip_norm > 0,
        "weight_decay": recipe.optimizer.weight_decay > 0,
        "label_smoothing": recipe.label_smoothing > 0,
        "shift_rate": recipe.optimizer.shift_rate != 1,
        "rate_in_velocity": recipe.optimizer.rate_in_velocity,
        "schedule": recipe.schedule.form,
        "precision": recipe.precision,
        "proxy": bool(recipe.data.proxy),
    }
    return {tuple(network), *update.items()}


def covering(names, parts=parts):
    """Returns recipes that together have every component; smaller networks are preferred."""
    chosen, covered = [], set()
    for name in sorted(names, key=lambda name: models.get(recipes.get(name).model).parameters):
        if parts(name) - covered:
            chosen.append(name)
            covered |= parts(name)
    return sorted(chosen)


# In the default suite: Muon, a proxy, LARS, Adam; test_catalog.py lowers the networks.
DEFAULT = [
    "cifar10/airbench94_muon",
    "cifar10/airbench96_faster",
    "imagenet/resnet50_lars",
    "squad/bert_tiny",
]


@pytest.mark.usefixtures("forgets_models")
@pytest.mark.parametrize("name", DEFAULT)
def test_the_train_step_compiles_with_xla_at_static_shapes(name, monkeypatch):
    """The recipe's network is the smallest of its family."""
    build_smallest(recipes.get(name), monkeypatch)
    is_lowered_whole(recipes.get(name))


def build_smallest(recipe, monkeypatch):
    """Makes recipes build their networks at the smallest size of the recipe's kind."""
    build, small = networks.build, smallest(recipe.model)
    monkeypatch.setattr(networks, "build", lambda row, args, *rest: build(row, args | small, *rest))


def is_large_reader(name):
    """Whether the family's smaller readers are lowered instead."""
    variant = models.get(recipes.get(name).model)
    return variant.inputs == "questions" and variant.parameters > 10**8


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if not is_large_reader(name)])
def test_every_train_step_compiles_with_xla_at_static_shapes(name):
    """Each recipe has its own process: TensorFlow does not free the memory of a lowering."""
    program = "import sys; from tests.conformance import test_recipes as tests; "
    program += "tests.is_lowered_whole(tests.recipes.get(sys.argv[1]))"
    command = [*warm.python(), "-c", program, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def is_lowered_whole(recipe):
    """XLA lowers the whole step of `fit`, augmentation and update included, at static shapes.

    It lowers for a CPU. For a GPU, XLA has a kernel for each operation.
    """
    if models.get(recipe.model).inputs == "images":
        most = 1024 if recipe.task_row.image_size < 64 else 32  # 32,768: 20 GB
        recipe = recipe.with_values(batch_size=min(recipe.batch_size, most))
        data = KERNELS["opened"](recipe, "NHWC")
        shapes = data.training_batches().element_spec
    else:
        splits = FEW if models.get(recipe.model).wordpieces else SPLITS["questions"]
        data = dataset.from_splits(recipe, splits)
        shapes = questions(recipe)
    model = fitting.build(data, jit_compile=True)
    side = recipe.sizes[0]  # of JPEGs, whose size changes from phase to phase
    specs = tf.nest.flatten(shapes)
    batch = [tf.ones([length or side for length in spec.shape], spec.dtype) for spec in specs]

    @tf.function(jit_compile=True)
    def step(*values):
        return model.train_step(tf.nest.pack_sequence_as(shapes, values))

    lowered = step.experimental_get_compiler_ir(*batch)(stage="hlo")
    assert " convolution(" in lowered or " dot(" in lowered
    assert "<=" not in lowered  # marks a dimension left open
    assert KERNELS["platforms"]() == ["GPU", "XLA on a GPU"]
    assert KERNELS["missing"](step.get_concrete_function(*batch).graph, "XLA on a GPU") == {}


def questions(recipe):
    """Returns the shapes of a batch of questions of one length."""
    lengths = {"context": recipe.data.bucket_boundaries[-1], "question": 30}
    inputs = []
    for name in networks.family_of(models.get(recipe.model)).reads:
        axes, dtype = texts.INPUTS[name]
        shape = [recipe.batch_size, lengths[name.partition("_")[0]], *axes]
        inputs.append(tf.TensorSpec(shape, dtype))
    return tuple(inputs), tf.TensorSpec([recipe.batch_size, 2], tf.int32)


@pytest.mark.long
def test_the_smallest_compiles_and_runs_under_xla():
    data = dataset.from_splits(recipes.get("digits/resnet8"), SPLITS["images"])
    model, count = data.network(), data.recipe.batch_size
    model.compile("sgd", losses.make_loss(data), jit_compile=True)
    images = tf.random.normal([count, 32, 32, 3])
    loss = model.fit(images, tf.zeros([count]), count, epochs=3, verbose=0).history["loss"]
    assert loss[2] < loss[0]
