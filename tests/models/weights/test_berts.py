"""Published BERTs load from each library's files; other files are refused in one line."""

import re

import h5py
import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from tests.models.test_berts import SMALL
from tests.models.weights.test_resnets import write

WIDTH = 12


def hugging_face(width=WIDTH, pieces=40, positions=48):
    """Returns a BERT as Hugging Face's state dict, with different values in every tensor."""
    rng, weights = np.random.default_rng(0), {}

    def dense(name, into, out):
        weights[f"{name}.weight"] = rng.normal(size=(out, into)) / into**0.5
        weights[f"{name}.bias"] = rng.normal(size=out)

    def norm(name):
        weights[f"{name}.LayerNorm.weight"] = rng.uniform(0.5, 1.5, width)
        weights[f"{name}.LayerNorm.bias"] = rng.normal(size=width)

    for name, size in (("word", pieces), ("position", positions), ("token_type", 2)):
        weights[f"bert.embeddings.{name}_embeddings.weight"] = rng.normal(size=(size, width))
    norm("bert.embeddings")
    for layer in range(2):
        block = f"bert.encoder.layer.{layer}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            dense(f"{block}.attention.{name}", width, width)
        dense(f"{block}.intermediate.dense", width, 4 * width)
        dense(f"{block}.output.dense", 4 * width, width)
        norm(f"{block}.attention.output")
        norm(f"{block}.output")
    dense("bert.pooler.dense", width, width)
    dense("qa_outputs", width, 2)
    return {name: value.astype("f") for name, value in weights.items()}


def google(weights):
    """Converts it to google-research/bert's names and layouts: variables of run_squad.py."""
    renamed = {}
    for name, value in weights.items():
        name = re.sub(r"layer\.(\d+)", r"layer_\1", name)
        if "LayerNorm" in name:
            name = name.replace("weight", "gamma").replace("bias", "beta")
        elif "embeddings" in name:
            name = name.removesuffix(".weight")
        elif "qa_outputs" in name:
            name = f"cls/squad/output_{name.rpartition('.')[2].replace('weight', 'weights')}"
        elif name.endswith(".weight"):
            name, value = name.replace(".weight", ".kernel"), value.T
        renamed[name.replace(".", "/")] = value
    return renamed


def hugging_face_keras(weights):
    """Converts it to the names and layouts of tf_model.h5."""
    renamed = {}
    for name, value in google(weights).items():
        name = re.sub(r"layer_(\d+)", r"layer_._\1", name)
        name = name.replace("word_embeddings", "word_embeddings/weight")
        name = re.sub(r"(position|token_type)_embeddings", r"\1_embeddings/embeddings", name)
        if name.startswith("cls/squad"):
            weights_of_head = name.endswith("weights")
            name = f"qa_outputs/tf_model/qa_outputs/{'kernel' if weights_of_head else 'bias'}"
            value = value.T
        else:
            name = f"bert/tf_model/{name}"
        renamed[f"{name}:0"] = value
    return renamed


def checkpoint(path, weights):
    variables = {name: tf.Variable(value) for name, value in weights.items()}
    variables["global_step"] = tf.Variable(7, dtype=tf.int64)
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=list(variables),
        shape_and_slices=[""] * len(variables),
        tensors=[variable.read_value() for variable in variables.values()],
    )


def hdf5(path, weights):
    with h5py.File(path, "w") as file:
        for name, value in weights.items():
            file[name] = value


def inputs():
    rng = np.random.default_rng(1)
    return [rng.integers(4, 40, (2, length)).astype(np.int32) for length in (9, 5)]


@pytest.mark.both_kerases
def test_files_of_all_libraries_give_equal_networks(tmp_path):
    weights = hugging_face()
    ids = {"bert.embeddings.position_ids": np.arange(48, dtype="f")}
    write(tmp_path / "model.safetensors", weights | ids)
    write(tmp_path / "bare.safetensors", {k.removeprefix("bert."): v for k, v in weights.items()})
    means = {f"{name}/adam_m": value for name, value in google(weights).items()}
    checkpoint(tmp_path / "bert_model.ckpt", google(weights) | means)
    hdf5(tmp_path / "tf_model.h5", hugging_face_keras(weights))
    outputs, model = [], models.build("bert_tiny_span", **SMALL)
    for file in (
        "model.safetensors",
        "bare.safetensors",
        "bert_model.ckpt",
        "bert_model.ckpt.index",
        "tf_model.h5",
    ):
        model.set_weights([np.zeros_like(weight) for weight in model.get_weights()])
        models.load_published(model, tmp_path / file)
        outputs.append(model(inputs(), training=False).numpy())
    for one in outputs[1:]:
        np.testing.assert_array_equal(one, outputs[0])
    block = "bert.encoder.layer.1"
    names = {f"attention.self.{name}": name for name in ("query", "key", "value")}
    for theirs, ours in {**names, "intermediate.dense": "wide"}.items():
        kernel = model.get_layer(f"layer_1_{ours}").kernel
        np.testing.assert_array_equal(kernel, weights[f"{block}.{theirs}.weight"].T)
    gamma = weights[f"{block}.output.LayerNorm.weight"]
    np.testing.assert_array_equal(model.get_layer("layer_1_narrow_norm").gamma, gamma)
    ends = [np.asarray(model.get_layer(name).kernel)[:, 0] for name in ("first", "last")]
    np.testing.assert_array_equal(ends, weights["qa_outputs.weight"])


def test_an_encoder_with_another_head_or_none_is_loaded(tmp_path):
    bert = models.build("bert_tiny_span", **SMALL)
    context, question = inputs()
    assert bert([context[:, :0], question]).shape == (2, 2, 0)
    outputs = bert.get_layer("features").output
    encoder = tf.keras.Model(bert.input, tf.keras.layers.Dense(3)(outputs))
    theirs = hugging_face()
    wide = {**theirs, "qa_outputs.weight": np.ones((3, WIDTH), "f")}
    for name, weights in (("none", without("qa_outputs")), ("span", theirs), ("wide", wide)):
        write(tmp_path / f"{name}.safetensors", weights)
    kernel = bert.get_layer("layer_1_wide").kernel
    before = [bert.get_layer(name).get_weights() for name in ("first", "last")]
    wanted = theirs["bert.encoder.layer.1.intermediate.dense.weight"].T
    with pytest.raises(ValueError, match="qa_outputs is no layer of the network; new_head=True"):
        models.load_published(encoder, tmp_path / "span.safetensors")
    with pytest.raises(ValueError, match=r"qa_outputs has shape \(12, 3\), ours \(12, 2\)"):
        models.load_published(bert, tmp_path / "wide.safetensors")
    cases = (encoder, "none", True), (encoder, "span", True), (bert, "wide", True)
    for model, file, new_head in (*cases, (bert, "none", False)):
        kernel.assign(tf.zeros_like(kernel))
        path = tmp_path / f"{file}.safetensors"
        assert not models.load_published(model, path, new_head=new_head)
        np.testing.assert_array_equal(tf.identity(kernel), wanted)
    after = [bert.get_layer(name).get_weights() for name in ("first", "last")]
    np.testing.assert_equal(after, before)
    assert models.load_published(bert, tmp_path / "span.safetensors", new_head=True)
    ends = [bert.get_layer(name) for name in ("last", "first")]  # in another order
    turned = tf.keras.Model(bert.input, [layer.output for layer in ends])
    for layer in ends:
        layer.kernel.assign(tf.zeros_like(layer.kernel))
    assert models.load_published(turned, tmp_path / "span.safetensors")
    kernels = [np.asarray(layer.kernel)[:, 0] for layer in ends]
    np.testing.assert_array_equal(kernels, theirs["qa_outputs.weight"][::-1])


def changed(name, *shape):
    return hugging_face() | {f"bert.{name}": np.ones(shape, "f")}


def without(part, **sizes):
    return {name: x for name, x in hugging_face(**sizes).items() if part not in name}


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (without("layer.1."), "it has no encoder/layer_1/attention/self/query"),
        (without("self.key.bias"), "it has no encoder/layer_0/attention/self/key, or that lacks"),
        (without("qa_outputs.bias"), "it has no qa_outputs, or that lacks the bias"),
        (changed("encoder.layer.2.output.dense.bias", 12), "it has 3 layers, the network 2"),
        (
            changed("embeddings.word_embeddings.weight", 41, 12),
            "the table of its embeddings/word_embeddings has shape (41, 12), ours (40, 12)",
        ),
        (
            changed("embeddings.x_position_embeddings.weight", 9, 12),  # LayoutLM
            "its embeddings/x_position_embeddings/weight is no layer of the network",
        ),
    ],
)
def test_another_network_is_refused_in_one_line(tmp_path, weights, words):
    file = write(tmp_path / "model.safetensors", weights)
    model = models.build("bert_tiny_span", **SMALL)
    before = model.get_weights()
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        models.load_published(model, file)
    assert "\n" not in str(error.value) and "bert_tiny_span" in str(error.value)
    np.testing.assert_equal(model.get_weights(), before)


def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path):
    checkpoint(tmp_path / "bert_model.ckpt", google(hugging_face()))
    index = tmp_path / "bert_model.ckpt.index"
    index.write_bytes(index.read_bytes()[:-20])
    model = models.build("bert_tiny_span", **SMALL)
    for _ in range(2):
        with pytest.raises(ValueError, match="should contain published weights of bert_tiny_span"):
            models.load_published(model, index)
        (tmp_path / "bert_model.ckpt.data-00000-of-00001").unlink(missing_ok=True)
