"""Preprocessing of test images as the publishers of weights did it: a table, and the function.

Images are decoded and resized by Pillow, as torchvision, timm and Keras do. No TensorFlow.
"""

import io
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from dawnbench_tf import machine
from dawnbench_tf.refusals import Refusal, one_line

_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # mean, deviation


class Preprocessing(NamedTuple):
    """How test images become a network's inputs: (pixels / scale - mean) / deviation."""

    publisher: str  # whose weights expect it
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    scale: float = 255.0
    bgr: bool = False  # whether the channels are blue, green, red
    crop: float = 0.875  # JPEGs: side of the center crop, as a share of the resized short side
    interpolation: str = "bilinear"  # with antialiasing

    def facts(self, side: int, jpegs: bool) -> dict[str, Any]:
        """Returns the settings as an entry's `misc` records them; `side` is the input's."""
        facts = {**self._asdict(), "shortSide": math.floor(side / self.crop), "side": side}
        unused = () if jpegs else ("crop", "interpolation", "shortSide")  # of images of one size
        return {name: value for name, value in facts.items() if name not in unused}


PREPROCESSINGS = {
    "torchvision": Preprocessing("torchvision, and timm's weights from there", *_IMAGENET),
    "timm": Preprocessing("timm", *_IMAGENET, interpolation="bicubic"),
    "timm_95": Preprocessing(
        "timm, with crop_pct 0.95 (a1_in1k and others)",
        *_IMAGENET,
        interpolation="bicubic",
        crop=0.95,
    ),
    "keras_caffe": Preprocessing(
        "keras.applications' ResNet", (103.939, 116.779, 123.68), (1.0, 1.0, 1.0), 1.0, bgr=True
    ),
    "keras_tf": Preprocessing(
        "keras.applications' ResNetV2", (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), 127.5
    ),
    "akamaster": Preprocessing("akamaster/pytorch_resnet_cifar10", *_IMAGENET),
    "cifar10": Preprocessing(
        "kuangliu/pytorch-cifar and others with CIFAR-10's own statistics",
        (0.4914, 0.4822, 0.4465),
        (0.2023, 0.1994, 0.2010),
    ),
}


def standardize(pixels: np.ndarray, row: Preprocessing) -> np.ndarray:
    """Returns a network's inputs, float32, for RGB pixels, uint8 (..., height, width, 3)."""
    values = pixels[..., ::-1] if row.bgr else pixels
    values = values.astype(np.float32) / np.float32(row.scale)
    mean, deviation = (np.array(numbers, np.float32) for numbers in (row.mean, row.deviation))
    return (values - mean) / deviation


def crop(content: bytes, row: Preprocessing, side: int) -> np.ndarray:
    """Decodes a JPEG or PNG, resizes its short side and cuts its center out."""
    # Returns uint8 (side, side, 3), RGB. Raises OSError: the image is damaged.
    from PIL import Image

    with Image.open(io.BytesIO(content)) as file:
        image = file.convert("RGB")
    short = math.floor(side / row.crop)
    # Both libraries round the long side down.
    size = [int(short * length / min(image.size)) for length in image.size]
    image = image.resize(size, Image.Resampling[row.interpolation.upper()])
    left, top = (round((length - side) / 2) for length in size)
    return np.asarray(image.crop((left, top, left + side, top + side)))


def prepare(split: Any, row: Preprocessing, side: int, indices: np.ndarray) -> np.ndarray:
    """Returns inputs, float32 (images, height, width, 3), for a `Split`'s images by index."""
    if split.jpegs is None:
        return standardize(split.images(indices), row)

    def cropped(content: bytes, index: int) -> np.ndarray:
        try:
            return crop(content, row, side)
        except (OSError, ValueError) as error:
            reason = one_line(error, 80)
            raise Refusal(f"--data_dir: test image {index} is damaged ({reason})") from None

    contents = split.jpegs(indices).numpy()
    with ThreadPoolExecutor(machine.cpus()) as pool:
        return standardize(np.stack(list(pool.map(cropped, contents, indices.tolist()))), row)
