"""Classification of images with a trained image model."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

from dawnbench_tf import files, run_folder, terminal
from dawnbench_tf.data.image_files import jpeg_index, shard_writer, trees
from dawnbench_tf.data.images import data, splits, tested
from dawnbench_tf.inference import serving
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import CLASSES

__all__ = ["Classifier", "Classes"]

BATCH = 64  # images in one call of the model


class Classes(NamedTuple):
    """The most probable classes of an image.

    Attributes:
      path: of the image.
      names: of classes, the most probable one first.
      probabilities: of these classes, according to the model.
      turned: whether the image has an EXIF orientation; it is not applied, as in training.
    """

    path: str
    names: list[str]
    probabilities: list[float]
    turned: bool


class Classifier:
    """A trained image model: `Classifier(run_folder)(["photo.jpg", "DIR"])`.

    Images are prepared as the run's test images are. If these have one size (CIFAR-10, the digits,
    arrays), the largest square in the middle of the image is resized to it.

    Args:
      folder: the `--output_dir` of a training run on images. Only its weights, recipe and classes
        are read; no code in it is executed.

    Raises:
      Refusal: the folder holds no run on images, or is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        folder = Path(folder)
        self.recipe = run_folder.owner_of(folder).recipe
        task = self.recipe.task_row
        if task.inputs != "images":
            text = f"is a run of {task.name}, a reading task; give --context_file and questions"
            raise Refusal(f"{folder}: {text}")
        saved, own = folder / data.CLASSES, self.recipe.whole_task.is_own
        names = files.read_json(saved).get("classes") if own else None
        if names and len(names) != task.classes:
            raise Refusal(f"{saved}: should have {task.classes} classes, has {len(names)}")
        self.classes = list(map(str, names or CLASSES.get(task.name) or range(task.classes)))
        self.model = serving.builder(self.recipe, folder)("float32")
        self._forward = serving.in_graph(self.model)

    def __call__(
        self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], count: int = 5
    ) -> Iterator[Classes]:
        """Yields the most probable classes of images, in the order of the paths.

        Args:
          paths: images, in any format that training reads, and folders of them.
          count: number of classes of each image, from 1.

        Raises:
          ValueError: `count` is below 1.
          Refusal: a file is missing, or a folder holds no image; or, after the classes of all
            others, images are damaged. It names their paths.
        """
        if count < 1:
            raise ValueError(f"`count` should be at least 1. Received: count={count}")
        images = [image for path in files.paths(paths) for image in _images(path)]
        return self._classes(images, count)

    def _classes(self, images: list[Path], count: int) -> Iterator[Classes]:
        damaged: list[str] = []
        for begin in range(0, len(images), BATCH):
            if len(images) > BATCH:
                terminal.status(f"{begin:,} of {len(images):,} images", logged=False)
            block = images[begin : begin + BATCH]
            names = [str(path.absolute())[1:] for path in block]
            index = jpeg_index.index_files(Path("/"), names, np.zeros(len(block)))
            turned: dict[int, bool] = {}  # of the images that are whole
            for number, path in enumerate(block):
                try:
                    unusual = shard_writer.check_image(index.raw(number), str(path))[2]
                    turned[number] = shard_writer.TURNED in unusual
                except Refusal as refusal:
                    damaged.append(str(refusal))
            if not turned:
                continue
            split, numbers = jpeg_index.split(index), np.array([*turned])
            if not self.recipe.task_row.jpegs:
                side = self.recipe.task_row.image_size
                decoded = (np.asarray(jpeg_index.decode(index.raw(n))) for n in turned)
                squares = [ImageOps.fit(Image.fromarray(image), (side, side)) for image in decoded]
                numbers = np.arange(len(squares))
                unlabeled = np.zeros(len(squares), np.int64)
                split = splits.in_memory(np.stack([*map(np.asarray, squares)]), unlabeled)
            inputs = tested.prepare(split, self.recipe, "NHWC", numbers)
            probabilities = tf.nn.softmax(self._forward(inputs)).numpy()
            best = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
            terminal.status("")
            for number, chosen, row in zip(turned, best, probabilities, strict=True):
                names = [self.classes[i] for i in chosen]
                yield Classes(str(block[number]), names, row[chosen].tolist(), turned[number])
        if damaged:
            more = f"; and {len(damaged) - 10:,} more" * (len(damaged) > 10)
            raise Refusal("; ".join(damaged[:10]) + more)


def _images(path: Path) -> list[Path]:
    """Returns a file, or the images in a folder, sorted."""
    if not path.exists():
        raise Refusal(f"{path}: no such file; should be an image or a folder of images")
    if not path.is_dir():
        return [path]
    names = trees.some_images(path)
    if left := trees.describe_unread(path, ()):
        terminal.say(f"{path}: not read: {left}")
    return [path / name for name in names]
