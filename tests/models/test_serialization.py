"""`.keras` files of one model of each family, saved in one process and loaded in another."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tensorflow as tf

from dawnbench_tf import models

ROOT = Path(__file__).parents[2]
SAVE = """
import sys
from pathlib import Path
import numpy as np
import tensorflow as tf
from dawnbench_tf import models
from dawnbench_tf.models import networks

for name in sys.argv[2:]:
    args = models.get(name).args
    model = models.build(name, **{**args, **networks.family_of(models.get(name)).smallest(args)})
    rng = np.random.default_rng(0)
    inputs = []
    for tensor in model.inputs:
        shape = [3 if axis is None else axis for axis in (2, *tensor.shape[1:])]
        is_float = tf.as_dtype(tensor.dtype).is_floating
        inputs.append(rng.random(shape).astype("f") if is_float else np.ones(shape, "int32"))
    model.save(f"{sys.argv[1]}/{name}.keras")
    outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    np.savez(f"{sys.argv[1]}/{name}.npz", *inputs, outputs=outputs)
"""
LOAD = """
import sys
from pathlib import Path
import numpy as np
from dawnbench_tf import models

for file in sorted(Path(sys.argv[1]).glob("*.keras")):
    model = models.load_model(file)
    with np.load(file.with_suffix(".npz")) as arrays:
        inputs = [arrays[name] for name in arrays.files if name != "outputs"]
        outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
        np.testing.assert_array_equal(outputs, arrays["outputs"], err_msg=file.name)
    print(file.stem)
"""
# LeakyReLU, CELU and a branch of stochastic depth, besides the first model of each family.
NAMES = ["resnet20_tf", "resnet9_whitened", "resnet56_stochastic"]
FIRST = {models.get(name).family: name for name in reversed(models.names())}
LARGE = {"amoebanet_d"}  # whose smallest has 700 layers
TRACED = {"bidaf", "drqa", "qanet"}  # tf-keras traces each of their LSTMs, blocks, several times
NAMES = {*NAMES, *FIRST.values()}


@pytest.mark.one_keras  # each Keras in processes of its own
@pytest.mark.parametrize(
    ("legacy", "names"),
    [
        ("1", NAMES - LARGE - TRACED),
        ("0", NAMES - LARGE),
        pytest.param("1", LARGE | TRACED, marks=pytest.mark.long),
        pytest.param("0", LARGE, marks=pytest.mark.long),
    ],
)
def test_a_file_of_each_family_loads_in_a_fresh_process(legacy, names, tmp_path):
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": legacy, "PYTHONPATH": str(ROOT)}
    for program, *arguments in ((SAVE, *names), (LOAD,)):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path), *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    assert {*done.stdout.split()} == names


@pytest.mark.one_keras
def test_every_module_that_registers_classes_is_imported():
    pattern = re.compile("register_keras_serializable")
    folder = ROOT / "models"
    wanted = {p.stem for p in folder.glob("*.py") if pattern.search(p.read_text("utf-8"))}
    text = (folder / "serialization.py").read_text("utf-8")
    assert wanted and wanted <= set(re.findall(r"^    (\w+),$", text, re.MULTILINE))


def _function(module, name):
    return {"module": module, "class_name": "function", "config": name, "registered_name": name}


def _write_file(path):
    """A node of tf-keras's own that writes a file when a network is built of it."""
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
    yield from (_function("os", "abort"), _function("builtins", "print"), _function("this", "s"))
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
        with pytest.raises(ValueError, match="`file` names .*, which may run code"):
            models.load_model(file)
    assert not (tmp_path / "written").exists()


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_only_a_zip_archive_is_loaded(tmp_path):
    """tf-keras takes others for HDF5 files and SavedModels, whose Lambda layers it runs."""
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
def test_a_damaged_file_is_a_value_error(config, tmp_path):
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", config)
    with pytest.raises(ValueError, match="`file` "):
        models.load_model(tmp_path / "model.keras")
