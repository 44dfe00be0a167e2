"""Images, Jpegs: augmentation and evaluation settings for images of one size or JPEGs."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, refuse_group, setting

_PROXY = "proxy"  # group of settings
# Settings that both classes have.
_FLIP = setting(
    False, "random horizontal flip of training images, with probability 1/2 in each epoch"
)
_ALTERNATING_FLIP = setting(
    False,
    "with --flip: flip each image in every second epoch, the first one chosen at random, in "
    "place of a new draw in each epoch",
)
_STANDARDIZE = setting(
    "image",
    "standardize images to mean 0 and standard deviation 1: by each image's own mean and "
    "deviation (image), or by channel_mean and channel_deviation (channel)",
    choices=("image", "channel"),
)
_CHANNEL_MEAN = setting(
    (),
    "mean of each color channel for --standardize=channel, with pixels scaled to 0..1; three "
    "numbers, comma-separated",
    low=0,
    high=1,
)
_CHANNEL_DEVIATION = setting(
    (),
    "standard deviation of each color channel for --standardize=channel, with pixels scaled to "
    "0..1; three numbers, comma-separated",
    low=0.001,
    high=1,
)
_TEST_VIEWS = setting(
    "image",
    "test-time augmentation: average the logits of the image alone (image), of the image and its "
    "horizontal flip (mirror), or of both and their shifts by one pixel up-left and down-right "
    "(6 views: mirror_and_shifts, unshifted ones weighted double; or mirror_and_even_shifts)",
    choices=("image", "mirror", "mirror_and_shifts", "mirror_and_even_shifts"),
)
_IMAGE_SIZES = setting(
    (),
    "height and width of training images in pixels: of crops of JPEGs; images of one size are "
    "scaled down to it; several numbers, comma-separated, are used one after another (progressive "
    "resizing, see image_size_epochs); default: the task's size",
    low=8,
    high=2048,
)
_IMAGE_SIZE_EPOCHS = setting(
    (),
    "epochs at which training moves on to the next of image_sizes, comma-separated; one fewer "
    "than image_sizes",
    low=1,
)
_VIEWS_SHARE = setting(
    1.0,
    "share of the test images that have all --test_views in training's evaluation: those whose "
    "predicted class has the lowest probability; the others have the image alone; `infer` uses all "
    "views for every image",
    above=0,
    high=1,
)


@dataclass(frozen=True)
class Images:
    """Settings for images that all have the network's input size. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "images"
    flip: bool = _FLIP
    alternating_flip: bool = _ALTERNATING_FLIP
    standardize: str = _STANDARDIZE
    channel_mean: tuple[float, ...] = _CHANNEL_MEAN
    channel_deviation: tuple[float, ...] = _CHANNEL_DEVIATION
    test_views: str = _TEST_VIEWS
    views_share: float = _VIEWS_SHARE
    image_sizes: tuple[int, ...] = _IMAGE_SIZES
    image_size_epochs: tuple[int, ...] = _IMAGE_SIZE_EPOCHS
    pad: int = setting(
        0,
        "pad training images by N pixels on each side, then crop them at a random position (to "
        "their original size, or to --crop_size); 0: no padding",
        low=0,
        high=31,
    )
    pad_mode: str = setting(
        "zeros",
        "values of the pixels that --pad adds: zeros, or the image reflected at its edge",
        choices=("zeros", "reflection"),
    )
    crop_size: int = setting(
        0,
        "the network's input size: train on random crops of N x N pixels, after --pad, and test on "
        "crops at the center; at most the images' size, which 0 stands for",
        low=0,
        high=2048,
    )
    cutout: int = setting(
        0,
        "Cutout: fill a square of N x N pixels, at a random position of each training image, with "
        "--cutout_color; 0: no Cutout",
        low=0,
        high=31,
    )
    cutout_clipped: bool = setting(
        False,
        "Cutout: draw the square's center from all pixels, so that part of the square may lie "
        "outside the image (DeVries & Taylor); if not, the whole square lies in the image (Page)",
    )
    cutout_color: str = setting(
        "mean",
        "Cutout: color of the square: the mean (0 after standardization), or black (0 before it)",
        choices=("mean", "black"),
    )
    color_jitter: tuple[float, ...] = setting(
        (),
        "color jitter of training images: brightness, contrast and saturation, in this order, are "
        "multiplied by random factors in 1 - x to 1 + x; an x for each, comma-separated, e.g. "
        "0.25,0.25,0.25; default: none",
        low=0,
        high=1,
    )
    brightness_contrast: tuple[float, ...] = setting(
        (),
        "jitter of standardized training images: a random shift within +-b, then a random factor "
        "in 1 - c to 1 + c, of all pixels; b and c, comma-separated, e.g. 0.14,0.13; default: none",
        low=0,
        high=1,
    )
    rotation: float = setting(
        0.0,
        "random rotation of training images by at most this many degrees to either side, to the "
        "nearest pixel; corners are black; 0: none",
        low=0,
        high=180,
    )
    mixup: float = setting(
        0.0,
        "mixup (Zhang et al. 2017, arXiv 1710.09412): train on s a + (1 - s) b, with labels mixed "
        "in the same way, where b is another image of a's batch and s = max(t, 1 - t) for a random "
        "t from Beta(alpha, alpha); this is alpha; 0: no mixup",
        low=0,
        high=10,
    )
    proxy: str = setting(
        "",
        "name of a small network, the proxy, that chooses the examples of each step: those of the "
        "batch whose loss is largest for it; on one device; default: none",
        group=_PROXY,
    )
    proxy_share: float = setting(
        0.5, "share of a batch's examples that the proxy chooses", above=0, high=1, group=_PROXY
    )
    proxy_every: int = setting(
        4,
        "the proxy itself trains in every Nth step, on the examples that it has chosen",
        low=1,
        group=_PROXY,
    )
    hardest: int = setting(
        0,
        "number N: train each step on the N examples of its batch whose loss was largest when they "
        "were last trained on, new ones first; on all of a batch that has no more; on one device; "
        "0: on all",
        low=0,
    )
    rectangular_test: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self)
        _check_shared(self)
        if not self.proxy:
            refuse_group(self, _PROXY, "requires --proxy")
        elif self.hardest:
            refuse("hardest", self.hardest, f"is another selection than --proxy={self.proxy}")
        if len(self.color_jitter) not in (0, 3):
            expected = "should be three shares: of brightness, contrast, saturation"
            refuse("color_jitter", self.color_jitter, expected)
        if len(self.brightness_contrast) not in (0, 2):
            refuse(
                "brightness_contrast", self.brightness_contrast, "should be two numbers: b and c"
            )
        for name in ("cutout_clipped", "cutout_color"):
            value = getattr(self, name)
            if not self.cutout and value not in (False, "mean"):
                refuse(name, value, "requires --cutout")


@dataclass(frozen=True)
class Jpegs:
    """Settings for JPEGs of any size, cropped and resized. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "images"
    flip: bool = _FLIP
    alternating_flip: bool = _ALTERNATING_FLIP
    standardize: str = _STANDARDIZE
    channel_mean: tuple[float, ...] = _CHANNEL_MEAN
    channel_deviation: tuple[float, ...] = _CHANNEL_DEVIATION
    test_views: str = _TEST_VIEWS
    views_share: float = _VIEWS_SHARE
    image_sizes: tuple[int, ...] = _IMAGE_SIZES
    image_size_epochs: tuple[int, ...] = _IMAGE_SIZE_EPOCHS
    test_image_size: int = setting(
        0,
        "JPEGs: height and width of test images in pixels; 0: the last of image_sizes",
        low=0,
        high=2048,
    )
    rectangular_test: bool = setting(
        False,
        "JPEGs: evaluate on rectangular images: the test set is sorted by aspect ratio, and each "
        "batch has the mean ratio of its images; `infer` uses square images",
    )
    smallest_crop: float = setting(
        0.08,
        "JPEGs: minimum area of a random resized crop, as a share of the training image's area",
        low=0.01,
        high=1,
    )
    smallest_crops: tuple[float, ...] = setting(
        (),
        "JPEGs: minimum area of a crop for each of --image_sizes, comma-separated, in place of "
        "--smallest_crop; default: --smallest_crop for all",
        low=0.01,
        high=1,
    )
    color_shift: tuple[float, ...] = setting(
        (),
        "JPEGs: color jitter: highest random shift of brightness and of chroma of training "
        "images, as shares of their range, comma-separated, e.g. 0.125,0.1; default: none",
        low=0,
        high=1,
    )
    # The pipeline for images of one size reads these of synthetic arrays in the JPEGs' place.
    pad: ClassVar[int] = 0
    pad_mode: ClassVar[str] = "zeros"
    crop_size: ClassVar[int] = 0
    cutout: ClassVar[int] = 0
    color_jitter: ClassVar[tuple[float, ...]] = ()
    brightness_contrast: ClassVar[tuple[float, ...]] = ()
    rotation: ClassVar[float] = 0.0
    mixup: ClassVar[float] = 0.0
    proxy: ClassVar[str] = ""
    hardest: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check(self)
        _check_shared(self)
        if len(self.smallest_crops) not in (0, len(self.image_sizes)):
            expected = f"should be {len(self.image_sizes)}, one for each of image_sizes"
            refuse("smallest_crops", self.smallest_crops, expected)
        if len(self.color_shift) not in (0, 2):
            expected = "should be two shares: of brightness, of chroma"
            refuse("color_shift", self.color_shift, expected)


def _check_shared(images: Images | Jpegs) -> None:
    """Refuses invalid combinations of the settings that both classes have."""
    if list(images.image_size_epochs) != sorted(set(images.image_size_epochs)):
        refuse("image_size_epochs", images.image_size_epochs, "should increase")
    if len(images.image_size_epochs) != max(len(images.image_sizes) - 1, 0):
        expected = f"should be one fewer than the {len(images.image_sizes)} image_sizes"
        refuse("image_size_epochs", images.image_size_epochs, expected)
    if images.alternating_flip and not images.flip:
        refuse("alternating_flip", True, "requires --flip")
    if images.views_share < 1 and images.test_views == "image":
        refuse("views_share", images.views_share, "requires --test_views of more than the image")
    if images.standardize == "channel" and not (
        len(images.channel_mean) == len(images.channel_deviation) == 3
    ):
        expected = "requires three numbers in each of channel_mean and channel_deviation"
        refuse("standardize", "channel", expected)
