"""Published BERTs load from each library's files; other files are refused in one line."""

import re

import h5py
import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from tests.models.weights.test_resnets import write

WIDTH, LAYERS = 12, 2
SMALL = {"pieces": 40, "cls_id": 2, "sep_id": 3, "positions": 48, "layers": LAYERS}
SMALL |= {"hidden": WIDTH, "heads": 3}
BLOCK = (
    ("attention.self.query", WIDTH, WIDTH),
    ("attention.self.key", WIDTH, WIDTH),
    ("attention.self.value", WIDTH, WIDTH),
    ("attention.output.dense", WIDTH, WIDTH),
    ("intermediate.dense", WIDTH, 4 * WIDTH),
    ("output.dense", 4 * WIDTH, WIDTH),
)


def hugging_face(head=True):
    """Returns a BERT as Hugging Face's state dict, with different values in every tensor."""
    rng, weights = np.random.default_rng(0), {}
    sizes = {"word": 40, "position": 48, "token_type": 2}
    for name, size in sizes.items():
        weights[f"bert.embeddings.{name}_embeddings.weight"] = rng.normal(size=(size, WIDTH))

    def norm(name):
        weights[f"{name}.LayerNorm.weight"] = rng.uniform(0.5, 1.5, WIDTH)
        weights[f"{name}.LayerNorm.bias"] = rng.normal(size=WIDTH)

    norm("bert.embeddings")
    for layer in range(LAYERS):
        block = f"bert.encoder.layer.{layer}"
        for name, into, out in BLOCK:
            weights[f"{block}.{name}.weight"] = rng.normal(size=(out, into)) / into**0.5
            weights[f"{block}.{name}.bias"] = rng.normal(size=out)
        norm(f"{block}.attention.output")
        norm(f"{block}.output")
    weights["bert.pooler.dense.weight"] = rng.normal(size=(WIDTH, WIDTH))
    weights["bert.pooler.dense.bias"] = rng.normal(size=WIDTH)
    if head:
        weights["qa_outputs.weight"] = rng.normal(size=(2, WIDTH))
        weights["qa_outputs.bias"] = rng.normal(size=2)
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
    kernel = model.get_layer("layer_1_wide").kernel
    theirs = weights["bert.encoder.layer.1.intermediate.dense.weight"]
    np.testing.assert_array_equal(kernel, theirs.T)
    ends = [np.asarray(model.get_layer(name).kernel)[:, 0] for name in ("first", "last")]
    np.testing.assert_array_equal(ends, weights["qa_outputs.weight"])


def test_a_file_without_a_head_does_not_change_the_span_head(tmp_path):
    write(tmp_path / "model.safetensors", hugging_face(head=False))
    model = models.build("bert_tiny_span", **SMALL)
    head = [model.get_layer(name) for name in ("first", "last")]
    before = [layer.get_weights() for layer in head]
    models.load_published(model, tmp_path / "model.safetensors")
    np.testing.assert_equal([layer.get_weights() for layer in head], before)


def test_an_encoder_with_another_head_or_none_is_loaded(tmp_path):
    bert = models.build("bert_tiny_span", **SMALL)
    context, question = inputs()
    assert bert([context[:, :0], question]).shape == (2, 2, 0)
    outputs = bert.get_layer("features").output
    encoder = tf.keras.Model(bert.input, tf.keras.layers.Dense(3)(outputs))
    theirs = hugging_face()
    wide = {**theirs, "qa_outputs.weight": np.ones((3, WIDTH), "f")}
    for name, weights in (("none", hugging_face(head=False)), ("span", theirs), ("wide", wide)):
        write(tmp_path / f"{name}.safetensors", weights)
    kernel, before = bert.get_layer("layer_1_wide").kernel, bert.get_layer("first").get_weights()
    wanted = theirs["bert.encoder.layer.1.intermediate.dense.weight"].T
    with pytest.raises(ValueError, match="qa_outputs is no layer of the network; new_head=True"):
        models.load_published(encoder, tmp_path / "span.safetensors")
    with pytest.raises(ValueError, match=r"qa_outputs has shape \(12, 3\), ours \(12, 2\)"):
        models.load_published(bert, tmp_path / "wide.safetensors")
    for model, file in ((encoder, "none"), (encoder, "span"), (bert, "wide")):
        kernel.assign(tf.zeros_like(kernel))
        path = tmp_path / f"{file}.safetensors"
        assert not models.load_published(model, path, new_head=True)
        np.testing.assert_array_equal(tf.identity(kernel), wanted)
    np.testing.assert_equal(bert.get_layer("first").get_weights(), before)
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


def without(part):
    return {name: x for name, x in hugging_face().items() if part not in name}


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
    with pytest.raises(ValueError, match="should contain published weights of bert_tiny_span"):
        models.load_published(models.build("bert_tiny_span", **SMALL), index)
    (tmp_path / "bert_model.ckpt.data-00000-of-00001").unlink()
    with pytest.raises(ValueError, match="should contain published weights of bert_tiny_span"):
        models.load_published(models.build("bert_tiny_span", **SMALL), index)
