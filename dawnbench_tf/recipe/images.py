"""Images and Jpegs: how images of one size, and JPEGs of any size, are varied and tested."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting

# Settings of both.
_FLIP = setting(False, "training images: mirror half of them")
_ALTERNATING_FLIP = setting(
    False, "with flip: an image that is mirrored in one epoch is not in the next"
)
_STANDARDIZE = setting(
    "image",
    "images to mean 0, deviation 1: by each image's own figures, or by channel_mean and "
    "channel_deviation",
    choices=("image", "channel"),
)
_CHANNEL_MEAN = setting((), "mean of each channel, of pixels in 0..1", low=0, high=1)
_CHANNEL_DEVIATION = setting((), "standard deviation of each channel", low=0.001, high=1)
_TEST_VIEWS = setting(
    "image",
    "test-time augmentation, logits averaged: none (image); mirror; or mirror and shifts by one "
    "pixel up-left and down-right (6 views, unshifted ones weighted double)",
    choices=("image", "mirror", "mirror_and_shifts"),
)


@dataclass(frozen=True)
class Images:
    """Images that come in the network's own size. Raises Refusal."""

    GROUP: ClassVar[str] = "images"
    flip: bool = _FLIP
    alternating_flip: bool = _ALTERNATING_FLIP
    standardize: str = _STANDARDIZE
    channel_mean: tuple[float, ...] = _CHANNEL_MEAN
    channel_deviation: tuple[float, ...] = _CHANNEL_DEVIATION
    test_views: str = _TEST_VIEWS
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
    rectangular_test: ClassVar[bool] = False

    def __post_init__(self):
        check(self)
        _check_both(self)


@dataclass(frozen=True)
class Jpegs:
    """Images of any size, which are cropped and resized. Raises Refusal."""

    GROUP: ClassVar[str] = "images"
    flip: bool = _FLIP
    alternating_flip: bool = _ALTERNATING_FLIP
    standardize: str = _STANDARDIZE
    channel_mean: tuple[float, ...] = _CHANNEL_MEAN
    channel_deviation: tuple[float, ...] = _CHANNEL_DEVIATION
    test_views: str = _TEST_VIEWS
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
    # Synthetic arrays that stand for JPEGs are not cropped.
    pad: ClassVar[int] = 0
    pad_mode: ClassVar[str] = "zeros"
    cutout: ClassVar[int] = 0

    def __post_init__(self):
        check(self)
        _check_both(self)
        if list(self.image_size_epochs) != sorted(set(self.image_size_epochs)):
            refuse("image_size_epochs", self.image_size_epochs, "should rise")
        if len(self.image_size_epochs) != max(len(self.image_sizes) - 1, 0):
            right = f"should be one fewer than the {len(self.image_sizes)} image_sizes"
            refuse("image_size_epochs", self.image_size_epochs, right)
        drawn = self.rand_augment
        if drawn and (len(drawn) != 2 or drawn[0] < 1 or drawn[0] != int(drawn[0])):
            refuse("rand_augment", drawn, "should be a whole number of operations, and a magnitude")
        if len(self.color_shift) not in (0, 2):
            refuse(
                "color_shift", self.color_shift, "should be two shares: of brightness, of chroma"
            )


def _check_both(images):
    if images.alternating_flip and not images.flip:
        refuse("alternating_flip", True, "should have --flip as well")
    if images.standardize == "channel" and not (
        len(images.channel_mean) == len(images.channel_deviation) == 3
    ):
        right = "takes three figures each in channel_mean and channel_deviation"
        refuse("standardize", "channel", right)
