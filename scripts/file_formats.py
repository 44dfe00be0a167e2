"""Saves a small model of each family in each format, loads it in a new process, checks outputs.

    .venv/bin/python scripts/file_formats.py        # writes the table of docs/file_formats.md
    .venv/bin/python scripts/file_formats.py save FOLDER NAME ...
    .venv/bin/python scripts/file_formats.py load FOLDER        # prints JSON

`save` and `load` use the Keras that TF_USE_LEGACY_KERAS selects; the table has both.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/file_formats.md"
MARK = "<!-- table: scripts/file_formats.py -->\n"
KERASES = {"0": "Keras 3", "1": "tf-keras"}
FORMATS = {  # key of a result -> heading of its column
    "alone": "`.keras`, without dawnbench_tf",
    "keras": "`.keras`, by `models.load_model`",
    "weights": "weights, into `models.build`",
    "saved_model": "SavedModel, without dawnbench_tf",
}


def names() -> list[str]:
    """Returns the name of a variant of each family, and of further kinds with other layers."""
    from dawnbench_tf import models

    first = {models.get(name).family: name for name in reversed(models.names())}
    others = ["resnet8_v1_proj", "resnet56_stochastic", "resnext29_8x64d"]
    others += ["resnet9_whitened", "kervresnet34"]
    return [*first.values(), *others]


def build(name: str):
    """Builds the smallest network of a variant's kind."""
    from dawnbench_tf import models
    from tests.smallest import smallest

    return models.build(name, **smallest(name))


def save(folder: Path, names: Iterable[str]) -> None:
    """Saves each model with random weights in each format, with inputs and outputs beside it."""
    import numpy as np

    random = np.random.default_rng(0)
    for name in names:
        model = build(name)
        model.set_weights([_moved(weight, random) for weight in model.get_weights()])
        inputs = [_drawn(tensor, random) for tensor in model.inputs]
        model.save(folder / f"{name}.keras")
        model.save_weights(folder / _weights(name))
        model.export(str(folder / name))
        outputs = np.asarray(model(inputs if len(inputs) > 1 else inputs[0], training=False))
        np.savez(folder / f"{name}.npz", *inputs, outputs=outputs)


def _moved(weight, random):
    is_float = weight.dtype.kind == "f"
    return weight + random.uniform(0, 0.1, weight.shape).astype(weight.dtype) * is_float


def _drawn(tensor, random):
    """Draws two examples of an input; texts have 3 tokens, of id 1 or padding."""
    import numpy as np
    import tensorflow as tf

    shape = [3 if axis is None else axis for axis in (2, *tensor.shape[1:])]
    if tf.as_dtype(tensor.dtype).is_floating:
        return random.random(shape).astype("float32")
    ids = random.integers(0, 2, shape).astype("int32")
    ids[:, 0] = 1
    return -np.sort(-ids, axis=1)


def _weights(name):
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS") == "1"
    return f"{name}.h5" if is_legacy else f"{name}.weights.h5"


def load(folder: Path) -> dict[str, dict[str, str]]:
    """Loads each model in each format. Returns model -> format -> "equal" or the fault."""
    import tensorflow as tf

    files = sorted(folder.glob("*.keras"))
    alone = partial(tf.keras.models.load_model, safe_mode=True)
    results = {  # loaded without importing this package
        file.stem: {"alone": _result(file, alone), "saved_model": _result(file, _served)}
        for file in files
    }
    if "dawnbench_tf" in sys.modules:
        raise RuntimeError("a file has imported dawnbench_tf")
    from dawnbench_tf import models

    for file in files:
        results[file.stem]["weights"] = _result(file, _rebuilt)
        results[file.stem]["keras"] = _result(file, models.load_model)
    return results


def _rebuilt(file):
    model = build(file.stem)
    model.load_weights(file.with_name(_weights(file.stem)))
    return model


def _served(file):
    import tensorflow as tf

    loaded = tf.saved_model.load(str(file.with_suffix("")))  # the closure keeps it alive
    return lambda inputs, training: loaded.serve(inputs)


def _result(file: Path, load: Callable[[Path], Callable]) -> str:
    import numpy as np

    try:
        model = load(file)
    except (TypeError, ValueError):  # tf-keras: "'str' object is not callable"
        return "needs dawnbench_tf"
    with np.load(file.with_suffix(".npz")) as arrays:
        inputs = [arrays[key] for key in arrays.files if key != "outputs"]
        wanted = arrays["outputs"]
    outputs = np.asarray(model(inputs if len(inputs) > 1 else inputs[0], training=False))
    error = np.abs(outputs - wanted).max() / np.abs(wanted[wanted > -1e29]).max()
    return "equal" if error < 1e-5 else f"off by {error:.0e}"


def run(keras: str, names: Iterable[str], python: tuple[str, ...] = (sys.executable,)) -> dict:
    """Saves in one process and loads in another.

    Args:
      keras: "1" for tf-keras, "0" for Keras 3.
      names: the models.
      python: command that starts the saving Python process.

    Returns:
      The result of `load`.
    """
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": keras, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        script = str(Path(__file__))
        for command in (
            [*python, script, "save", folder, *names],
            [sys.executable, script, "load", folder],
        ):
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout.splitlines()[-1])


def table(results: dict[str, dict[str, dict[str, str]]]) -> str:
    """Formats the table, a row for each model, from the results of each Keras."""
    from dawnbench_tf import models

    lines = [f"| family | model | {' | '.join(FORMATS.values())} |", "|---" * 6 + "|"]
    for name in sorted(results["0"], key=models.names().index):
        cells = []
        for key in FORMATS:
            by_keras = {KERASES[keras]: results[keras][name][key] for keras in KERASES}
            same = len({*by_keras.values()}) == 1
            cells.append(
                by_keras["Keras 3"] if same else ", ".join(f"{k}: {v}" for k, v in by_keras.items())
            )
        lines.append(f"| `{models.get(name).family}` | `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(*arguments: str) -> None:
    """Runs `save` or `load`, or writes the page without an argument."""
    match arguments:
        case ["save", folder, *chosen]:
            save(Path(folder), chosen)
        case ["load", folder]:
            print(json.dumps(load(Path(folder))))
        case _:
            text = table({keras: run(keras, names()) for keras in KERASES})
            before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
            PAGE.write_text(f"{before}{MARK}{text}{MARK}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
