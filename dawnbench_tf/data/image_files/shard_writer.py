"""Writes JPEGs as TFRecord shards with an index, and checks every image.

Records have the format of TensorFlow's ImageNet scripts (image/encoded, image/class/label from 1
on). As in those scripts, other image formats and CMYK JPEGs are re-encoded as RGB JPEGs.
"""

import io
import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event

import numpy as np
import simplejpeg
import tensorflow as tf
from PIL import Image

from dawnbench_tf import files, machine, terminal
from dawnbench_tf.data.image_files import jpeg_index, shards
from dawnbench_tf.data.image_files.jpeg_index import JpegIndex
from dawnbench_tf.refusals import Refusal

FAULTS = 10  # number of damaged images in a message, at most
_ORDER_SEED = 2012
_MOST_PIXELS = 100_000_000  # largest image, in pixels
_PIXELS_PER_BYTE = 1_000  # limit for JPEGs over 2^20 pixels; single-color ones have 170
Image.MAX_IMAGE_PIXELS = None  # Pillow's own limit, which warns or raises; check_image has ours
_ORIENTATION = 0x0112  # EXIF tag; 1 is upright
TURNED = "turned by EXIF, left as it is stored"


def write(
    index: JpegIndex, classes: Sequence[str], root: Path, split: str, per_shard: int, shuffled: bool
) -> Counter[str]:
    """Writes a split's shards and index; counts unusual images. Existing shards are kept."""
    order = np.arange(len(index.labels))
    if shuffled:
        np.random.default_rng(_ORDER_SEED).shuffle(order)
    count = -(-len(order) // per_shard)
    parts = np.array_split(order, count)
    names = [f"{split}-{number:05}-of-{count:05}" for number in range(count)]
    others = [name for name in shards.list_present(root, split) if name not in names]
    if others:
        raise Refusal(f"{root / others[0]}: is there already; name another folder, or remove it")
    jobs = [(root / name, part) for name, part in zip(names, parts, strict=True)]
    kept = {path for path, _ in jobs if path.exists()}
    if kept:
        hint = "to write one again, remove it"
        terminal.say(f"{root}: {len(kept)} of {count} {split} shards exist and are kept; {hint}")
    unusual = _write_all(index, classes, [job for job in jobs if job[0] not in kept])
    # The index is made from the files on disk, so it also covers, and checks, existing shards.
    terminal.status(f"reading {split} again")
    written = shards.scan(root, names)
    for shard, (path, part) in enumerate(jobs):
        rows = np.flatnonzero(written.files == shard)
        same = written.labels[rows].tolist() == index.labels[part].tolist()
        if same and path in kept:  # another edition of a data set has equal labels
            first = check_image(index.raw(part[0]), index.path(part[0]))[0]
            same = first == written.raw(rows[0])
        if not same:
            raise Refusal(f"{path}: is not of these images; remove it, and prepare again")
    shards.write_index(written, split)
    return unusual


def _write_all(
    index: JpegIndex, classes: Sequence[str], missing: list[tuple[Path, np.ndarray]]
) -> Counter[str]:
    """Writes shards in parallel threads; Ctrl-C, an error or FAULTS damaged images stop all."""
    unusual, stop, begin, done = Counter[str](), Event(), time.monotonic(), 0
    faults = list[str]()
    total = sum(len(part) for _, part in missing)
    with ThreadPoolExecutor(machine.cpus()) as pool:
        jobs = {
            pool.submit(_write_shard, index, classes, path, part, stop): len(part)
            for path, part in missing
        }
        try:
            for job in as_completed(jobs):
                counts, damaged = job.result()
                unusual += counts
                faults += damaged
                if len(faults) >= FAULTS:
                    break
                done += jobs[job]
                rate = done / (time.monotonic() - begin)
                terminal.status(
                    f"{done:,} of {total:,} images written, {rate:,.0f} a second, "
                    f"{(total - done) / rate / 60:.0f} min to go"
                )
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    if faults:
        text = "; ".join(faults[:FAULTS])
        raise Refusal(f"{text}; then the same command goes on")
    return unusual


def _write_shard(
    index: JpegIndex, classes: Sequence[str], path: Path, examples: np.ndarray, stop: Event
) -> tuple[Counter[str], list[str]]:
    """Writes a shard under a temporary name, then renames it: a shard is never incomplete."""
    # Returns counts of unusual images, and a message for each damaged one. A shard with damaged
    # images is not kept.
    temporary = path.with_name(f".{path.name}.tmp")
    counts, faults = Counter[str](), list[str]()
    try:
        with tf.io.TFRecordWriter(str(temporary)) as writer:
            for example in examples.tolist():
                if stop.is_set() or len(faults) >= FAULTS:
                    break
                label = int(index.labels[example])
                try:
                    content, size, unusual = check_image(index.raw(example), index.path(example))
                except Refusal as refusal:
                    faults.append(str(refusal))
                    continue
                writer.write(
                    make_record(content, size, label, classes[label], index.numbers[example])
                )
                counts.update(unusual)
        if not stop.is_set() and not faults:
            os.replace(temporary, path)
    except (OSError, tf.errors.OpError) as error:
        raise files.cannot_write(path, error) from None
    finally:
        files.discard(temporary)
    return counts, faults


def check_image(content: bytes, path: str) -> tuple[bytes, tuple[int, int], list[str]]:
    """Returns an image as it will be stored, its (width, height), and its unusual properties."""
    is_jpeg = content.startswith(jpeg_index.JPEG)
    most = _MOST_PIXELS  # a page in one bit a pixel has 8,000 a byte
    if is_jpeg:
        most = min(max(_PIXELS_PER_BYTE * len(content), 2**20), most)
    try:
        with Image.open(io.BytesIO(content)) as image:
            size, mode = image.size, image.mode
            if size[0] * size[1] > most:
                claim = f"{len(content):,} bytes that claim {size[0]:,} x {size[1]:,} pixels"
                text = f"{claim}, more than an image of that size has; fetch it again"
                raise Refusal(f"{path}: {text}")
            orientation = image.getexif().get(_ORIENTATION, 1)  # may decode a PNG
    except Refusal:
        raise
    except (OSError, ValueError, SyntaxError):
        reason = "holds no image that can be decoded" if content else "is empty"
        raise Refusal(f"{path}: {reason}; fetch it again") from None
    unusual = []
    if not is_jpeg:
        unusual.append("no JPEG, encoded anew")
        content, mode = jpeg_index.as_jpeg(content, path), "RGB"
    try:
        if warning := _decoder_warning(content):
            terminal.say(f"{path}: libjpeg: {warning}; kept as it is")
            unusual.append("damaged within, named above")
        if mode == "CMYK":
            unusual.append("CMYK, encoded anew")
            content = jpeg_index.as_jpeg(content, path)
    except (ValueError, tf.errors.OpError):
        raise Refusal(f"{path}: holds no whole JPEG; fetch it again") from None
    unusual += ["grey"] if mode == "L" else []
    unusual += [TURNED] if orientation != 1 else []
    return content, size, unusual


def _decoder_warning(content: bytes) -> str:
    """Returns libjpeg's warning about a damaged JPEG; "" if there is none."""
    # After a warning libjpeg fills the unreadable pixels in. Raises ValueError for a JPEG that
    # can't be decoded or ends too early.
    try:
        simplejpeg.decode_jpeg(content, "GRAY")
    except ValueError as error:
        simplejpeg.decode_jpeg(content, "GRAY", strict=False)
        if "end of JPEG" in str(error):
            raise
        return str(error).strip()
    return ""


def make_record(
    content: bytes, size: tuple[int, int], label: int, synset: str, number: int = 0
) -> bytes:
    """Returns a serialized tf.train.Example; `label` from 0 on, `number` 0: not of validation."""
    texts = {"encoded": content, "format": b"JPEG", "class/synset": synset.encode()}
    if number:
        texts["filename"] = f"{jpeg_index.VALIDATION}{number:08}.JPEG".encode()
    numbers = {"class/label": label + 1, "width": size[0], "height": size[1]}
    features = tf.train.Features()
    for name, text in texts.items():
        features.feature[f"image/{name}"].bytes_list.value.append(text)
    for name, integer in numbers.items():
        features.feature[f"image/{name}"].int64_list.value.append(integer)
    return tf.train.Example(features=features).SerializeToString()
