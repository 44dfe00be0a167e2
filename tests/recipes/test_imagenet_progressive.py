"""The schedules of entries whose batch size changes equal their authors' logs and code."""

import math

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data.images.data import ImageData
from dawnbench_tf.data.images.splits import Split, Splits
from dawnbench_tf.tasks import TASKS
from dawnbench_tf.training import schedules

# dawn/logs/single_machine/event.log of diux-dev/imagenet18, of eight machines in spite of its name:
# first and last epoch of each linear phase -> learning rate of its first and last step.
FASTAI_LOG = {
    **{0: (1.9220382165605094, 2.24), 5: (3.5220382165605093, 3.84)},
    **{6: (3.84, 3.84), 10: (3.84, 3.84)},
    **{11: (3.831898734177215, 3.2), 13: (2.551898734177215, 1.92)},
    **{14: (1.92, 1.92), 16: (1.92, 1.92)},
    **{17: (1.9170666666666667, 1.656), 22: (0.5970666666666669, 0.336)},
    **{23: (0.33544, 0.2856), 28: (0.08344, 0.0336)},
    **{29: (0.019186242038216558, 0.01704), 35: (0.00622624203821656, 0.00408)},
}
# hvd_train.txt of mzhangatge/imagenet104: steps at which phases end; step -> learning rate.
GE_ENDS = (1296, 4536, 11_411, 14_679, 19_683)
GE_LOG = {
    **{0: 1.0, 1: 1.00077, 625: 1.48225, 1250: 1.96451, 1875: 1.72301, 2500: 1.42401},
    **{3125: 1.12502, 3750: 0.82602, 4375: 0.52702, 5000: 0.36471, 5625: 0.27481},
    **{6250: 0.20706, 6875: 0.15602, 7500: 0.11756, 8125: 0.08858, 8750: 0.06674},
    **{9375: 0.05029, 10_000: 0.03789, 10_625: 0.02855, 11_250: 0.02151, 11_875: 0.01591},
    **{12_500: 0.0117, 13_125: 0.0086, 13_750: 0.00632, 14_375: 0.00465, 15_000: 0.00383},
    **{15_625: 0.00351, 16_250: 0.00322, 16_875: 0.00295, 17_500: 0.00271, 18_125: 0.00248},
    **{18_750: 0.00228, 19_375: 0.00209},
}


def loaded(name):
    """Returns a recipe, the steps of its epochs with all of ImageNet's images, and its rates."""
    recipe = recipes.get(f"imagenet/{name}")
    labels = np.zeros(TASKS["imagenet"].train_examples, np.int64)
    steps = ImageData(recipe, Splits(Split(labels), Split(labels[:1])), None).epoch_steps
    factor = schedules.factor(recipe, steps)
    return recipe, steps, lambda step: recipe.optimizer.learning_rate * float(factor(step))


def test_fastai_s_rates_on_eight_machines_equal_its_log_s():
    recipe, steps, rate = loaded("resnet50_fastai_8m")
    assert recipe.epochs == len(steps) == 37 and max(FASTAI_LOG) == 35  # it ended there
    for epoch, (first, last) in FASTAI_LOG.items():
        begin = sum(steps[:epoch])
        assert rate(begin) == pytest.approx(first, rel=1e-5)
        assert rate(begin + steps[epoch] - 1) == pytest.approx(last, rel=1e-5)


def test_ge_s_steps_and_rates_equal_its_log_s():
    _, steps, rate = loaded("resnet50_ge")
    assert [sum(steps[:epoch]) for epoch in (6, 21, 32, 36, 40)] == list(GE_ENDS)
    for step, logged in GE_LOG.items():
        assert rate(step) == pytest.approx(logged, rel=1.3e-3, abs=5e-6)  # it has five places


# phases of train.py at f0fc713 and 59a8f25, and of lambda's entry: GPUs; epochs of the rates and
# rates; epoch -> batch size of a GPU; epoch -> side and smallest crop of images
PHASES = {
    "resnet50_fastai_4m": (
        32,
        {(0, 6): (2, 4), 6: 4, (11, 13): (4, 2), 13: 2 * 224 / 256, (16, 24): (1.75, 0.175)}
        | {(24, 28): (0.175, 0.0175), (28, 30): (2 / 100 * 128 / 256, 2 / 1000 * 128 / 256)},
        {0: 256, 6: 512, 13: 224, 28: 128},
        {0: (128, 0.08), 13: (224, 0.087), 28: (288, 0.5)},
    ),
    "resnet50_fastai_16m": (
        128,
        {(0, 6): (1.88, 3.76), 6: 3.76, 16: 1.88, 19: 2 * 1.88 / (10 / 1.5)}
        | {31: 2 * 1.88 / (100 / 1.5), 37: 2 * 1.88 / 100, (38, 50): 2 * 1.88 / 1000},
        {0: 64, 6: 128, 16: 64, 19: 192, 37: 128},
        {0: (128, 0.08), 16: (224, 0.08), 37: (288, 0.5)},
    ),
    "resnet50_lambda": (
        4,
        {(0, 8): (0.5, 1.0), (8, 15): (1.0, 0.125), (15, 25): (0.22, 0.022)}
        | {(25, 28): (0.022, 0.0022), (28, 29): (0.00125, 0.000125)},
        {0: 256, 15: 112, 28: 64},
        {0: (128, 0.08), 15: (224, 0.087), 28: (288, 0.5)},
    ),
}


def rate_of(rates, epoch, share):
    """The author's scheduler: the last phase that has begun; linear, a step ahead."""
    begins = {key if isinstance(key, int) else key[0]: key for key in rates}
    key = begins[max(begin for begin in begins if begin <= epoch)]
    if not isinstance(rates[key], tuple):
        return rates[key]
    (begin, end), (first, last) = key, rates[key]
    return first + (last - first) * (epoch - begin + share) / (end - begin)


@pytest.mark.parametrize("name", PHASES)
def test_phases_equal_the_source_s(name):
    gpus, rates, sizes, images = PHASES[name]
    recipe, steps, rate = loaded(name)
    data, count = recipe.data, TASKS["imagenet"].train_examples
    for epoch in range(recipe.epochs):
        size = gpus * sizes[max(begin for begin in sizes if begin <= epoch)]
        assert recipe.in_epoch(epoch).batch_size == size
        # DistributedSampler gives each GPU an equal share, the loader keeps the rest of a batch.
        assert steps[epoch] == math.ceil(math.ceil(count / gpus) / (size // gpus))
        for step in (0, steps[epoch] // 2, steps[epoch] - 1):
            expected = rate_of(rates, epoch, (step + 1) / steps[epoch])
            assert rate(sum(steps[:epoch]) + step) == pytest.approx(expected, rel=1e-5)
    assert tuple(images) == (0, *data.image_size_epochs)
    assert tuple(zip(*images.values(), strict=True)) == (data.image_sizes, data.smallest_crops)
