"""ImageNet to 93 % top-5 with image and batch sizes that change: fast.ai's entries and others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dawnbench_tf.recipe import Network, Optimizer, Recipe, Schedule
from dawnbench_tf.recipes import imagenet
from dawnbench_tf.tasks import TASKS

Rates = tuple[int, int, float, float]  # first epoch, end, learning rate at the first, at the end

# Source of the next five: train_imagenet_nv.py and dataloader.py of diux-dev/imagenet18, with the
# phases of its train.py. A phase's batch size is that of one GPU there; here of all. A rate that
# changes is linear in the step; step n of a phase, from 0 on, has the rate of n + 1.
# Differences: half precision there; phases of 128 and 224 pixels are evaluated at their size there,
# and read images that were resized to a short side of 160 or 352 pixels before, the first phase of
# 224 pixels of 16 machines the original ones; dense weights start with a deviation of 0.01 there;
# PyTorch draws a crop's area uniformly, TensorFlow its height: of 0.08 to 1 the mean is 0.43 there
# and 0.37 here; an epoch's last batch is smaller there, here it is filled up; sides of test images
# are rounded down to multiples of 8 there, here to the nearest of 32, and to a ratio of at most 2.
_BASE = Recipe(
    task="imagenet",
    model="resnet50_v1_5",
    precision="mixed_bfloat16",
    network=Network(zero_last_norm=True, synchronized_batch_norm=False),
    optimizer=Optimizer(momentum=0.9, weight_decay=1e-4, decays="all_but_norms"),
    data=replace(imagenet.RESNET50_V1_5.data, rectangular_test=True),
)


def corners_ahead(
    rates: Sequence[Rates], steps_in: Callable[[int], int]
) -> list[tuple[float, float]]:
    """Returns the corners (epoch, rate) of a schedule that is read a step ahead, from step 1 on."""
    # `steps_in` returns the steps of an epoch; the epochs of each item of `rates` have equally
    # many.
    corners: list[tuple[float, float]] = []
    for begin, end, start, stop in rates:
        steps = steps_in(begin)
        rise = (stop - start) / ((end - begin) * steps)  # of a step
        corners += [(begin, start + rise), (end - 1 / steps, stop)]
    return corners


def _linear(corners: Sequence[tuple[float, float]], peak: float) -> Schedule:
    epochs, rates = zip(*corners, strict=True)
    return Schedule(form="linear", epochs=epochs, factors=tuple(rate / peak for rate in rates))


def _fastai(
    name: str,
    batch_sizes: Mapping[int, int],  # first epoch: global batch size
    images: Mapping[int, tuple[int, float]],  # first epoch: side of the images, smallest crop
    rates: Sequence[Rates],  # each phase of them has one batch size
) -> Recipe:
    """Returns a recipe of imagenet18's phases."""
    (_, first), *later = batch_sizes.items()
    sides, crops = zip(*images.values(), strict=True)
    recipe = replace(
        _BASE,
        name=f"imagenet/{name}",
        epochs=rates[-1][1],
        batch_size=first,
        later_batch_sizes=tuple(size for _, size in later),
        batch_size_epochs=tuple(epoch for epoch, _ in later),
        data=replace(
            _BASE.data, image_sizes=sides, image_size_epochs=tuple(images)[1:], smallest_crops=crops
        ),
    )
    examples = TASKS["imagenet"].train_examples
    corners = corners_ahead(rates, lambda epoch: -(-examples // recipe.in_epoch(epoch).batch_size))
    peak = max(rate for _, rate in corners)
    return replace(
        recipe,
        optimizer=replace(_BASE.optimizer, learning_rate=peak),
        schedule=_linear(corners, peak),
    )


# On 4, 8 and 16 machines with eight GPUs each. 4 machines: rates as the entry states them and
# f0fc713 has them; the last batch size is 4,096 in the code, 8,192 in the entry's `misc`.
# 8 machines: the rates of the run's log, event.log, which end at epoch 37; in the code at 36.
# 16 machines: rates of the code; the entry's `misc` has lower ones from epoch 16 to 31.
FASTAI_4_MACHINES = _fastai(
    "resnet50_fastai_4m",
    batch_sizes={0: 8192, 6: 16_384, 13: 7168, 28: 4096},
    images={0: (128, 0.08), 13: (224, 0.087), 28: (288, 0.5)},
    rates=(
        (0, 6, 2, 4),
        (6, 11, 4, 4),
        (11, 13, 4, 2),
        (13, 16, 1.75, 1.75),
        (16, 24, 1.75, 0.175),
        (24, 28, 0.175, 0.0175),
        (28, 30, 0.01, 0.001),
    ),
)
FASTAI_8_MACHINES = _fastai(
    "resnet50_fastai_8m",
    batch_sizes={0: 8192, 6: 16_384, 14: 8192, 17: 14_336, 29: 8192},
    images={0: (128, 0.08), 14: (224, 0.087), 29: (288, 0.5)},
    rates=(
        (0, 6, 1.92, 3.84),
        (6, 11, 3.84, 3.84),
        (11, 14, 3.84, 1.92),
        (14, 17, 1.92, 1.92),
        (17, 23, 1.92, 0.336),
        (23, 29, 0.336, 0.0336),
        (29, 37, 0.0192, 0.00192),
    ),
)
FASTAI_16_MACHINES = _fastai(
    "resnet50_fastai_16m",
    batch_sizes={0: 8192, 6: 16_384, 16: 8192, 19: 24_576, 37: 16_384},
    images={0: (128, 0.08), 16: (224, 0.08), 37: (288, 0.5)},
    rates=(
        (0, 6, 1.88, 3.76),
        (6, 16, 3.76, 3.76),
        (16, 19, 1.88, 1.88),
        (19, 31, 0.564, 0.564),
        (31, 37, 0.0564, 0.0564),
        (37, 38, 0.0376, 0.0376),
        (38, 50, 0.00376, 0.00376),
    ),
)
# Source: lambdal/imagenet18, the same code, on four GPUs; phases as the entry states them. Images
# of 224 pixels were resized to a short side of 320 before.
LAMBDA = _fastai(
    "resnet50_lambda",
    batch_sizes={0: 1024, 15: 448, 28: 256},
    images={0: (128, 0.08), 15: (224, 0.087), 28: (288, 0.5)},
    rates=(
        (0, 8, 0.5, 1),
        (8, 15, 1, 0.125),
        (15, 25, 0.22, 0.022),
        (25, 28, 0.022, 0.0022),
        (28, 29, 0.00125, 0.000125),
    ),
)

# Source: imagenet_nv/main.py of fastai/imagenet-fast at c4b2255 with the flags in the entry's
# `misc`, on eight GPUs with 128 images each, as the entry states; the script that started it has
# 192 as default, and sets 128 for 288 pixels.
# Differences: half precision there; each phase is evaluated at its size there; images of the first
# 18 epochs were resized to a short side of 160 pixels before; crops as above; initial weights are
# divided by the number of GPUs, as in wrn_22_6_8gpu.
FASTAI = replace(
    _BASE,
    name="imagenet/resnet50_fastai",
    epochs=45,
    batch_size=1024,
    network=Network(synchronized_batch_norm=False),
    optimizer=Optimizer(learning_rate=0.4, momentum=0.9, weight_decay=1e-4, decays="all"),
    schedule=Schedule(
        form="steps",
        epochs=(1, 2, 3, 21, 35, 43),
        factors=(1 / 4, 1 / 3, 1 / 2, 1, 0.1, 0.01, 0.001),
    ),
    data=replace(
        _BASE.data,
        rectangular_test=False,
        image_sizes=(128, 224, 288),
        image_size_epochs=(18, 41),
        smallest_crops=(0.08, 0.08, 0.5),
    ),
)


# Source: imagenet_train.py and hvd_train.txt, the log, of mzhangatge/imagenet104, on eight GPUs.
# Its "exp" is a straight line of the rate's logarithm; here corners are a quarter of an epoch
# apart, which differs by at most 0.13 %. Steps per epoch are rounded down in the log.
# Differences: half precision there; its network, of which the code was removed, came from
# aws-samples/deep-learning-models: v1.5 with BN's epsilon 1e-4 and momentum 0.9, and padding as
# TensorFlow's. Its pipeline was never public: crops and test images are assumed to be the usual.
# Kernels start with a variance of 1 by fan-in there, dense weights with a deviation of 0.01; phases
# of 128 pixels read images that were resized to 160 before; it trains 625 steps more.
def _ge_corners(begin: int, end: int, start: float, stop: float) -> list[tuple[float, float]]:
    """Returns corners (epoch, rate) of an exponential fall, without that of `end`."""
    quarters = 4 * (end - begin)
    return [(begin + i / 4, start * (stop / start) ** (i / quarters)) for i in range(quarters)]


_GE = [
    (0, 1.0),
    (6, 2.0),
    *_ge_corners(21, 32, 0.45, 0.02),
    *_ge_corners(32, 36, 0.02, 0.004),
    *_ge_corners(36, 40, 0.004, 0.002),
    (40, 0.002),
]
GE = replace(
    _BASE,
    name="imagenet/resnet50_ge",
    epochs=40,
    batch_size=5920,
    later_batch_sizes=(2048, 1568, 1024),
    batch_size_epochs=(21, 32, 36),
    drop_remainder=True,
    optimizer=Optimizer(
        learning_rate=2.0,
        momentum=0.9,
        nesterov=True,
        weight_decay=2e-4,
        decays="all_but_norms",  # the log's first penalty, 2.677, is that of the kernels
    ),
    schedule=_linear(_GE, peak=2.0),
    data=replace(
        _BASE.data,
        rectangular_test=False,
        channel_mean=(121 / 255, 115 / 255, 100 / 255),
        channel_deviation=(70 / 255, 68 / 255, 71 / 255),
        image_sizes=(128, 224, 288),
        image_size_epochs=(21, 36),
    ),
)
