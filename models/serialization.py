"""Loads `.keras` files from untrusted sources: checks them against an allow-list before Keras does.

Keras imports the modules that a file's config.json names. tf-keras also loads HDF5 files and
SavedModels, with their code, if they are named `.keras`.
"""

import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from . import layers  # noqa: F401 - registers them

LARGEST_CONFIG = 64 * 2**20  # bytes of config.json; AmoebaNet-D's has 2 million

_MODELS = {"Functional", "Model", "Sequential"}
_PACKAGES = {  # Keras packages whose classes are allowed, by their name in configs
    f"keras.{name}": getattr(tf.keras, name)
    for name in ("constraints", "initializers", "layers", "losses", "metrics", "optimizers")
} | {
    "keras.mixed_precision": tf.keras.mixed_precision,
    "keras.optimizers.schedules": tf.keras.optimizers.schedules,
    "keras.regularizers": tf.keras.regularizers,
}
_CODE = {"FlaxLayer", "JaxLayer", "Lambda", "TFSMLayer", "TorchModuleWrapper"}  # contain code
_FILES = {"IntegerLookup", "StringLookup", "TextVectorization"}  # open files by name
_VALUES = {"__keras_tensor__", "__numpy__", "__tensor__", "__tuple__"}  # values, not classes


def load_model(file: str | os.PathLike) -> tf.keras.Model:
    """Loads a `.keras` file; see `models.load_model`."""
    config = _read_config(file)
    _check(config, file)
    try:
        return tf.keras.models.load_model(file, safe_mode=True)
    except Exception as error:  # damaged files make Keras raise many types
        module = config.get("module") if isinstance(config, dict) else ""
        saved = str(module).partition(".")[0]
        if saved != tf.keras.Model.__module__.partition(".")[0] and saved in ("keras", "tf_keras"):
            flag = f"TF_USE_LEGACY_KERAS={int(saved == 'tf_keras')}"
            text = f"was saved by {saved}; set {flag} before TensorFlow is imported"
            raise _refusal(file, text) from error
        raise _refusal(file, f"can't be loaded ({type(error).__name__}: {error})") from error


def _read_config(file: str | os.PathLike) -> Any:
    """Reads the file's config.json."""
    path = Path(file)
    if path.suffix != ".keras" or not path.is_file() or not zipfile.is_zipfile(path):
        text = "should be a `.keras` file, a zip archive; for published weights, load_published"
        raise _refusal(file, text)
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("config.json").file_size > LARGEST_CONFIG:
                raise ValueError(f"is larger than {LARGEST_CONFIG >> 20} MiB")
            return json.loads(archive.read("config.json"))
    except (OSError, KeyError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise _refusal(file, f"has no config.json that can be read ({error})") from None


def _check(config: Any, file: str | os.PathLike) -> None:
    """Raises ValueError if a config names anything that is not on the allow-list."""
    nodes = [config]
    while nodes:  # not recursive: a file may be nested more deeply than Python's stack
        node = nodes.pop()
        if isinstance(node, dict):
            if "class_name" in node and not _is_allowed(node):
                names = [str(node.get(key))[:80] for key in ("module", "class_name", "config")]
                name = f"{names[0]}.{names[2] if names[1] == 'function' else names[1]}"
                earlier = "; if an earlier release saved it, save the run's model anew"
                earlier *= name.startswith("dawnbench_tf.")
                raise _refusal(file, f"names {name}, which is not known to be harmless{earlier}")
            nodes += node.values()
        elif isinstance(node, list):
            nodes += node


def _is_allowed(node: dict[str, Any]) -> bool:
    module, name, registered = map(node.get, ("module", "class_name", "registered_name"))
    if not isinstance(name, str) or not isinstance(module, str):
        return module is None and name in _VALUES  # Keras reads other dicts as its old format
    if name == "function":
        # Of Keras alone: it would look for other names in Python's builtins.
        packages = (tf.keras.activations, tf.keras.losses, tf.keras.metrics)
        name = node.get("config")
        is_public = isinstance(name, str) and not name.startswith("_")
        return module == "builtins" and is_public and any(hasattr(p, f"{name}") for p in packages)
    if name in _CODE | _FILES or name.startswith("_"):
        return False
    if isinstance(registered, str) and tf.keras.utils.get_registered_object(registered):
        return True  # registered by this package or by the program that loads the file
    if name in _MODELS:
        return module.split(".")[0] in ("keras", "tf_keras")
    if (module, name) == ("keras", "DTypePolicy"):
        return True
    if re.fullmatch(r"keras\.src\.backend\.torch\.optimizers\.torch_\w+", module):
        module = "keras.optimizers"  # whose classes are these under PyTorch
    return isinstance(getattr(_PACKAGES.get(module), name, None), type)


def _refusal(file: str | os.PathLike, text: str) -> ValueError:
    return ValueError(f"`file` {text}. Received: file={os.fspath(file)}")
