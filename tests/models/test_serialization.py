"""`.keras` files that may run code, and damaged ones, are refused."""

import json
import os
import zipfile

import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import serialization

pytestmark = pytest.mark.both_kerases


def _write_file(path):
    """Returns a tf-keras config node that writes a file when a model is built from it."""
    return {
        "module": "tf_keras.src.layers.core.tf_op_layer",
        "class_name": "TFOpLambda",
        "registered_name": "TFOpLambda",
        "name": "write",
        "config": {"name": "write", "trainable": True, "function": "io.write_file"},
        "inbound_nodes": [["_CONSTANT_VALUE", -1, str(path), {"contents": "written"}]],
    }


def _hostile_nodes(path):
    lookup = {"vocabulary": str(path), "name": "lookup"}
    yield _write_file(path)
    yield {"module": "os", "class_name": "function", "config": "abort"}
    yield {"module": "builtins", "class_name": "function", "config": "print"}
    yield {"class_name": "Lambda", "config": {"function": ["code", None, None]}}  # old format
    yield {"module": "keras.utils", "class_name": "get_file", "config": {"origin": "file:///x"}}
    yield {"module": "keras.layers", "class_name": "TFSMLayer", "config": {"filepath": str(path)}}
    yield {"module": "keras.layers", "class_name": "StringLookup", "config": lookup}
    registered = {"registered_name": "dawnbench_tf>PadChannels", "config": {}}
    yield {"class_name": "Lambda", **registered}
    yield {"module": "os", "class_name": "__typespec__", "spec_name": "system", **registered}


def test_a_config_that_may_run_code_is_refused(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    model.save(tmp_path / "good.keras")
    assert models.load_model(tmp_path / "good.keras").layers
    with zipfile.ZipFile(tmp_path / "good.keras") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for number, node in enumerate(_hostile_nodes(tmp_path / "written")):
        config = json.loads(parts["config.json"])
        config["config"]["layers"].append(node)
        file = tmp_path / f"{number}.keras"
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in {**parts, "config.json": json.dumps(config)}.items():
                archive.writestr(name, content)
        with pytest.raises(ValueError, match="`file` names .*, which is not known to be harmless"):
            models.load_model(file)
    assert not (tmp_path / "written").exists()


def test_an_optimizer_under_pytorch_is_known_by_its_module():
    sgd = {"module": "keras.src.backend.torch.optimizers.torch_sgd", "class_name": "SGD"}
    assert serialization._is_allowed(sgd)
    assert not serialization._is_allowed({**sgd, "class_name": "Lambda"})
    assert not serialization._is_allowed({**sgd, "module": "torch_sgd"})


def test_a_file_of_the_other_keras_is_told(tmp_path):
    modern = tf.keras.Model.__module__.startswith("keras.")
    module = "tf_keras.src.engine" if modern else "keras.src.models"
    config = {"module": f"{module}.functional", "class_name": "Functional", "config": {}}
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", "{}")
    words = f"was saved by {module.partition('.')[0]}; set TF_USE_LEGACY_KERAS={int(modern)} before"
    with pytest.raises(ValueError, match=words):
        models.load_model(tmp_path / "model.keras")


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_only_a_zip_archive_is_loaded(tmp_path):
    """tf-keras would load other files as HDF5 or SavedModel, and run their Lambda layers."""
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Lambda(abs)])
    model.save(tmp_path / "model.h5")
    (tmp_path / "model.h5").rename(tmp_path / "hdf5.keras")
    tf.saved_model.save(tf.Module(), str(tmp_path / "saved.keras"))
    os.mkfifo(tmp_path / "fifo.keras")
    (tmp_path / "zero.keras").symlink_to("/dev/zero")
    for file in sorted(tmp_path.glob("*.keras")):
        with pytest.raises(ValueError, match="should be a `.keras` file, a zip archive"):
            models.load_model(file)


@pytest.mark.parametrize("config", ["[1", "{}", '{"a":' * 9999 + "1" + "}" * 9999])
def test_a_damaged_file_raises_value_error(config, tmp_path):
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", config)
    with pytest.raises(ValueError, match="`file` "):
        models.load_model(tmp_path / "model.keras")
