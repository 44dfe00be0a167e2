"""The weights of a run as they are evaluated, beside each of its checkpoints: weights.npz."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dawnbench_tf import files, npz, runs
from dawnbench_tf.refusals import Refusal, one_line


def write(path: Path, weights: Sequence[np.ndarray]) -> None:
    """Writes a model's weights, in its own order, without the streams of random numbers in it.

    Raises OSError.
    """
    floats = [array for array in weights if _is_weight(array)]
    arrays: dict[str, Any] = {f"{number:05}": array for number, array in enumerate(floats)}
    np.savez(path, **arrays)


def _is_weight(array):
    """Whether it is no counter or random stream, which are whole numbers."""
    return array.dtype.kind not in "iu"


def read(folder: Path) -> list[np.ndarray]:
    """The weights of the newest checkpoint in a run's folder, in the order of its model's.

    Raises:
      Refusal: there is none, or it is damaged, or an earlier version wrote it.
    """
    newest = runs.checkpoints(folder)
    if not newest:
        raise Refusal(f"{folder}: holds no checkpoint; train with --output_dir={folder} first")
    path, state = newest[-1][1] / runs.WEIGHTS, newest[-1][1] / runs.STATE
    sums = files.read_json(state).get("files")
    if not isinstance(sums, dict) or not isinstance(sums.get(runs.WEIGHTS), str):
        text = (
            f"an earlier version wrote it; dawnbench train --output_dir={folder} adds its weights"
        )
        raise Refusal(f"{path.parent}: {text}")
    if not files.is_regular(path):
        raise Refusal(f"{path}: is no regular file; should be the weights of a run")
    if files.digest(path) != sums[runs.WEIGHTS]:
        raise Refusal(f"{path}: damaged; it is not what was written")
    try:
        arrays = npz.read(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Refusal(f"{path}: can't be read ({one_line(error, 80)})") from None
    return [arrays[name] for name in sorted(arrays)]
