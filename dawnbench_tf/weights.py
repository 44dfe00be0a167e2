"""The evaluated weights of a run: the file weights.npz in each of its checkpoints."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dawnbench_tf import files, npz, runs
from dawnbench_tf.refusals import Refusal, one_line


def write(path: Path, weights: Sequence[np.ndarray]) -> None:
    """Writes the weights of a model, in the order of its variables. Raises OSError."""
    arrays: dict[str, Any] = {f"{number:05}": array for number, array in enumerate(weights)}
    np.savez(path, **arrays)


def read(folder: Path) -> list[np.ndarray]:
    """Reads the weights of the newest checkpoint in a run's folder, in the order of the model's.

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
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sums[runs.WEIGHTS]:
            raise Refusal(f"{path}: damaged; it is not what was written")
        arrays = npz.read(content)
    except Refusal:
        raise
    except (OSError, ValueError) as error:
        raise Refusal(f"{path}: can't be read ({one_line(error, 80)})") from None
    return [arrays[name] for name in sorted(arrays)]
