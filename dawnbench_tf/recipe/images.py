"""Images: augmentation and evaluation settings for images of one size and for JPEGs."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, documented, setting

ONE_SIZE, JPEGS = "images of one size", "images of any size"  # kinds of images, in errors


@documented
@dataclass(frozen=True)
class Images:
    """Settings for images of one size or JPEGs, as the task's are. Raises Refusal if invalid.

    `ONLY_FOR` has the settings of one kind; a recipe refuses those that are not for its task.
    """

    GROUP: ClassVar[str] = "images"
    flip: bool = setting(
        False, "random horizontal flip of training images, with probability 1/2 in each epoch"
    )
    alternating_flip: bool = setting(
        False,
        "flip each image in every second epoch, the first one chosen at random, in place of a new "
        "draw in each epoch",
        needs="flip",
    )
    standardize: str = setting(
        "image",
        "standardize images to mean 0 and standard deviation 1: by each image's own mean and "
        "deviation (image), or by channel_mean and channel_deviation (channel)",
        choices=("image", "channel"),
    )
    channel_mean: tuple[float, ...] = setting(
        (),
        "mean of each color channel for --standardize=channel, with pixels scaled to 0..1; three "
        "numbers, comma-separated",
        high=1,
    )
    channel_deviation: tuple[float, ...] = setting(
        (),
        "standard deviation of each color channel for --standardize=channel, with pixels scaled to "
        "0..1; three numbers, comma-separated",
        low=0.001,
        high=1,
    )
    class_weights: str | None = setting(
        None,
        "weigh the loss of each class's images by examples / (classes x images of the class), so "
        "that rare classes count as much as frequent ones (balanced)",
        choices=("balanced",),
    )
    test_views: str = setting(
        "image",
        "test-time augmentation: average the logits of the image alone (image), of the image and "
        "its horizontal flip (mirror), or of it, its shifts by one pixel up-left and down-right, "
        "and the flips of all three (6 views: mirror_and_shifts, unshifted ones weighted double; "
        "or mirror_and_even_shifts)",
        choices=("image", "mirror", "mirror_and_shifts", "mirror_and_even_shifts"),
    )
    views_share: float = setting(
        1.0,
        "share of the test images that have all --test_views in training's evaluation: those whose "
        "predicted class has the lowest probability; the others have the image alone; `infer` uses "
        "all views for every image",
        above=0,
        high=1,
        needs="test_views",
    )
    image_sizes: tuple[int, ...] = setting(
        (),
        "height and width of training images in pixels: of crops of JPEGs; images of one size are "
        "scaled down to it; several numbers, comma-separated, are used one after another "
        "(progressive resizing, see image_size_epochs); default: the task's size",
        low=8,
        high=2048,
    )
    image_size_epochs: tuple[int, ...] = setting(
        (),
        "epochs at which training moves on to the next of image_sizes, comma-separated; one fewer "
        "than image_sizes",
        low=1,
        needs="image_sizes",
    )
    pad: int = setting(
        0,
        "pad training images by N pixels on each side, then crop them at a random position (to "
        "their original size, or to --crop_size); 0: no padding",
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
        high=2048,
    )
    cutout: int = setting(
        0,
        "Cutout: fill a square of N x N pixels, at a random position of each training image, with "
        "--cutout_color; 0: no Cutout",
        high=31,
    )
    cutout_clipped: bool = setting(
        False,
        "Cutout: draw the square's center from all pixels, so that part of the square may lie "
        "outside the image (DeVries & Taylor); if not, the whole square lies in the image (Page)",
        needs="cutout",
    )
    cutout_color: str = setting(
        "mean",
        "Cutout: color of the square: the mean (0 after standardization), or black (0 before it)",
        choices=("mean", "black"),
        needs="cutout",
    )
    color_jitter: tuple[float, ...] = setting(
        (),
        "color jitter of training images: brightness, contrast and saturation, in this order, are "
        "multiplied by random factors in 1 - x to 1 + x; an x for each, comma-separated, e.g. "
        "0.25,0.25,0.25; default: none",
        high=1,
    )
    brightness_contrast: tuple[float, ...] = setting(
        (),
        "jitter of standardized training images: a random shift within +-b, then a random factor "
        "in 1 - c to 1 + c, of all pixels; b and c, comma-separated, e.g. 0.14,0.13; default: none",
        high=1,
    )
    rotation: float = setting(
        0.0,
        "random rotation of training images by at most this many degrees to either side, to the "
        "nearest pixel; corners are black; 0: none",
        high=180,
    )
    mixup: float = setting(
        0.0,
        "mixup (Zhang et al. 2017, arXiv 1710.09412): train on s a + (1 - s) b, with labels mixed "
        "in the same way, where b is a's image in a random permutation of the batch and "
        "s = max(t, 1 - t) for a random t from Beta(alpha, alpha); this is alpha; 0: no mixup",
        high=10,
    )
    proxy: str = setting(
        "",
        "name of a small network, the proxy, that chooses the examples of each step: those of the "
        "batch whose loss is largest for it; on one device; default: none",
    )
    proxy_share: float = setting(
        0.5, "share of a batch's examples that the proxy chooses", above=0, high=1, needs="proxy"
    )
    proxy_every: int = setting(
        4,
        "the proxy itself trains in every Nth step, on the examples that it has chosen",
        low=1,
        needs="proxy",
    )
    hardest: int = setting(
        0,
        "number N: train each step on the N examples of its batch whose loss was largest when they "
        "were last trained on, new ones first; on all of a batch that has no more; on one device; "
        "0: on all",
    )
    test_image_size: int = setting(
        0, "JPEGs: height and width of test images in pixels; 0: the last of image_sizes", high=2048
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
        needs="image_sizes",
    )
    color_shift: tuple[float, ...] = setting(
        (),
        "JPEGs: color jitter: highest random shift of brightness and of chroma of training "
        "images, as shares of their range, comma-separated, e.g. 0.125,0.1; default: none",
        high=1,
    )

    def __post_init__(self) -> None:
        check(self)
        if list(self.image_size_epochs) != sorted(set(self.image_size_epochs)):
            refuse("image_size_epochs", self.image_size_epochs, "should increase")
        sizes = len(self.image_sizes)
        if len(self.image_size_epochs) != max(sizes - 1, 0):
            expected = f"should be one fewer than the {sizes} image_sizes"
            expected += "; --image_size_epochs= leaves them out" if sizes == 1 else ""
            refuse("image_size_epochs", self.image_size_epochs, expected)
        if self.standardize == "channel" and not (
            len(self.channel_mean) == len(self.channel_deviation) == 3
        ):
            expected = "requires three numbers in each of channel_mean and channel_deviation"
            refuse("standardize", "channel", expected)
        if self.proxy and self.hardest:
            refuse("hardest", self.hardest, f"is another selection than --proxy={self.proxy}")
        for name, count, expected in (
            ("color_jitter", 3, "should be three shares: of brightness, contrast, saturation"),
            ("brightness_contrast", 2, "should be two numbers: b and c"),
            ("smallest_crops", sizes, f"should be {sizes}, as image_sizes, or an empty value"),
            ("color_shift", 2, "should be two shares: of brightness, of chroma"),
        ):
            value = getattr(self, name)
            if len(value) not in (0, count):
                refuse(name, value, expected)


# Settings of one kind of images; the others are of both kinds.
_ONE_SIZE_ONLY = """pad pad_mode crop_size cutout cutout_clipped cutout_color color_jitter rotation
    brightness_contrast mixup proxy proxy_share proxy_every hardest"""
_JPEGS_ONLY = "test_image_size rectangular_test smallest_crop smallest_crops color_shift"
ONLY_FOR = {
    **dict.fromkeys(_ONE_SIZE_ONLY.split(), ONE_SIZE),
    **dict.fromkeys(_JPEGS_ONLY.split(), JPEGS),
}
