"""Images as training and inference ask for them."""

from inspect import signature

import numpy as np
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.data.images import jpegs, pipeline, synthetic, tested, views
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.data.inputs import Inputs, Placement
from dawnbench_tf.models import factories, networks
from dawnbench_tf.models.layers.image import Whitening
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task


def _check(task: Task, splits: Splits) -> None:
    for name, split, examples in (
        ("train", splits.train, task.train_examples),
        ("test", splits.test, task.test_examples),
    ):
        labels = split.labels
        if len(labels) != examples:
            raise Refusal(
                f"{task.name} {name}: should hold {examples} examples, found {len(labels)}"
            )
        if labels.min() < 0 or labels.max() >= task.classes:
            bad = int(np.argmax((labels < 0) | (labels >= task.classes)))
            raise Refusal(
                f"{task.name} {name}: label {labels[bad]} of example {bad} should be in "
                f"0..{task.classes - 1}; the file is damaged or of another data set"
            )


def _arrange(splits: Splits, recipe: Recipe) -> Splits:
    """With rectangular tests, images of like shape together, so that a batch can have one."""
    labels, read = splits.test.labels, splits.test.jpegs
    if not recipe.rectangular_test or read is None:
        return splits
    ratios = jpegs.ratios(read, len(labels))
    order = np.argsort(ratios, kind="stable")
    in_order = Split(labels[order], jpegs=lambda i: read(tf.gather(order, i)), ratios=ratios[order])
    return splits._replace(test=in_order)


def _first(splits: Splits, count: int) -> Splits:
    return splits._replace(test=splits.test.first(count))


def _of_training(splits: Splits, count: int) -> Splits:
    return splits._replace(test=splits.train.first(count))


def _references(splits: Splits) -> np.ndarray:
    return splits.test.labels


def _nothing_to_save(*_):
    """A recipe and weights say all about a network for images."""


def _network(
    splits: Splits, recipe: Recipe, placement: Placement, precision: str = ""
) -> tf.keras.Model:
    """The recipe's network for its task's images: for training, or to answer in a precision."""
    task, channels_first = recipe.task_row, placement.data_format == "NCHW"
    sides = [recipe.test_side if precision or _one_size(recipe) else None] * 2
    args, variant = _of_family(recipe), models.get(recipe.model)
    _check_sides(recipe, args)
    args = {
        **variant.args,
        **args,
        "num_classes": task.classes,
        "input_shape": (3, *sides) if channels_first else (*sides, 3),
        "data_format": placement.data_format,
        "dtype": precision or recipe.precision,
        "synchronized": _synchronizes(recipe, placement.strategy),
    }
    return networks.build(variant, args, factories.TRAINING)


def _one_size(recipe):
    return len({*recipe.sizes, recipe.test_side}) == 1 and not recipe.rectangular_test


def _check_sides(recipe, args):
    variant = models.get(recipe.model)
    least = networks.family_of(variant).smallest_side({**variant.args, **args})
    for name, side in (("image_sizes", min(recipe.sizes)), ("test_image_size", recipe.test_side)):
        if side < least and recipe.task_row.jpegs:
            refuse(name, side, f"{recipe.model} sees images of {least} pixels at least")
        if side < least:
            right = f"sees images of {least} pixels at least; {recipe.task} has {side}"
            refuse("model", recipe.model, right)
    if recipe.auxiliary_weight and not _one_size(recipe):
        right = "the head sees images of one size; set --image_sizes to one, or this to 0"
        refuse("auxiliary_weight", recipe.auxiliary_weight, right)


def _of_family(recipe):
    """Arguments that only some families take."""
    body = networks.family_of(models.get(recipe.model)).body
    args = {}
    for name, argument, families in (
        ("zero_last_norm", "zero_last_norm", "ResNets for ImageNet"),
        ("auxiliary_weight", "auxiliary", "AmoebaNets"),
        ("final_survival", "final_survival", "CIFAR ResNets"),
    ):
        value = getattr(recipe, name)
        if not value:
            continue
        if argument not in signature(body).parameters:
            refuse(name, value, f"{recipe.model} has none; {families} have")
        args[argument] = value if argument == name else True
    return args


def _synchronizes(recipe, strategy):
    """Whether BN needs to speak across replicas to see the global batch."""
    several = strategy.num_replicas_in_sync > 1 and recipe.synchronized_batch_norm
    args = {**models.get(recipe.model).args, **_of_family(recipe)}
    if several and args.get("final_survival", 1) < 1:
        refuse(
            "synchronized_batch_norm",
            True,
            f"{recipe.model} skips blocks, and BN can't speak across replicas inside one that may "
            "be skipped; add --nosynchronized_batch_norm for statistics of each replica's own",
        )
    return several


def _adapt(model: tf.keras.Model, splits: Splits, recipe: Recipe, placement: Placement) -> None:
    """Lets whitening layers take the training images' statistics."""
    for layer in model.layers:
        if isinstance(layer, Whitening):
            images = tested.without_augmentation(
                splits.train, recipe, placement.data_format, layer.examples
            )
            layer.adapt(images)


def _answering(model: tf.keras.Model, recipe: Recipe, placement: Placement) -> tf.keras.Model:
    return views.seen(model, recipe.test_views, placement.data_format)


INPUTS = Inputs(
    load_options=lambda recipe: {"skip_blacklisted": True} if recipe.skip_blacklisted else {},
    check=_check,
    synthetic=synthetic.load,
    first=_first,
    of_training=_of_training,
    origin=lambda splits: splits.origin,
    references=_references,
    steps=pipeline.steps,
    train=pipeline.train,
    on_devices=pipeline.on_devices,
    arrange=_arrange,
    test=tested.batches,
    prepare_test=tested.prepare,
    collect=tested.collect,
    save=_nothing_to_save,
    save_outputs=_nothing_to_save,
    check_saved=_nothing_to_save,
    one_by_one=tested.OneByOne,
    join=tested.join,
    fixed_shape=True,
    trial_size=200,
    network=_network,
    adapt=_adapt,
    answering=_answering,
)
