"""Converts an image data set to TFRecord shards with an index.

    dawnbench prepare --raw=DIR --out=DIR     # ImageNet: archives, or unpacked

With shards, training shuffles the whole data set and opens few files. Every
image is decoded once, so damaged ones are found now. After Ctrl-C, the same
command continues. Exit status: 0; 1 for bad input.
"""

import shlex
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from dawnbench_tf import files, flags, machine, terminal
from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check as check_settings
from dawnbench_tf.settings import setting
from dawnbench_tf.tasks import TASKS

__all__ = ["prepare", "Options"]


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench prepare`: input, output and size of the shards."""

    task: str = setting(
        "imagenet",
        "task whose data set is converted",
        choices=tuple(task.name for task in TASKS.values() if task.jpegs),
    )
    raw: str = setting("", "folder of the archives, the unpacked images, or other shards")
    out: str = setting("", "folder to write the shards to; existing shards are kept")
    examples_per_shard: int = setting(
        1252,
        "images per shard, at most; by default ImageNet's training set has 1,024 shards",
        low=1,
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.raw or not Path(self.raw).expanduser().is_dir():
            refuse("raw", self.raw, "should be the folder of the archives, images or shards")
        if not self.out:
            refuse("out", "", "should be the folder to write to")


def main(options: Options, _: list[str]) -> None:
    terminal.status("importing TensorFlow")
    with machine.importing():
        unusual = prepare(options)
    terminal.status("")
    for warning, count in sorted(unusual.items()):
        terminal.say(f"{count:,} of the images written now: {warning}", is_prose=True)
    out = shlex.quote(str(Path(options.out).expanduser()))
    terminal.say(f"{out}: ready; train with --data_dir={out}", is_prose=True)


def prepare(options: Options) -> Counter[str]:
    """Writes TFRecord shards, with an index, of the training and the validation images.

    Each image is decoded once. Shards that an earlier call wrote are kept. Prints nothing.

    Args:
      options: the task, the folder of its archives or images, the folder to write to.

    Returns:
      For each warning of the JPEG decoder, the number of images written now that have it.

    Raises:
      Refusal: images are missing or damaged, which names them, or the folder can't be written.
      KeyboardInterrupt: call it again with the same options to go on.
    """
    from dawnbench_tf.data.image_files import layouts, shard_writer
    from dawnbench_tf.data.images.data import check

    task = TASKS[options.task]
    wanted = import_module(f"dawnbench_tf.data.{task.name}").WANTED
    terminal.status(f"looking for the images in {options.raw}")
    located = layouts.find(wanted, options.raw, "raw")
    check(task, located.splits())
    out = Path(options.out).expanduser()
    if out.resolve() == located.train.root.resolve():
        refuse("out", options.out, "has the shards of --raw already; name another folder")
    files.make_folder(out)
    unusual = Counter[str]()
    with files.locked(out, "another `prepare` writes to it; wait for its end", flag="out"):
        for split, index in (("validation", located.test), ("train", located.train)):
            terminal.status(f"{split}: {len(index.labels):,} images from {located.source}")
            unusual += shard_writer.write(
                index, wanted.classes, out, split, options.examples_per_shard, split == "train"
            )
    return unusual


if __name__ == "__main__":
    flags.run(main, Options, interrupted="to continue: {command}")
