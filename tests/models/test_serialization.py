"""`.keras` files of one model of each family, saved in one process and loaded in another."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
