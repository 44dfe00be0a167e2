"""Published weights in inference: preprocessing, the entry, readers, refusals."""

import io
import json
import re

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from dawnbench_tf import infer, models, recipes
from dawnbench_tf.data import dataset, qa_mini
from dawnbench_tf.data.questions import spans
from dawnbench_tf.infer import Options
from dawnbench_tf.inference import preprocessing, published
from dawnbench_tf.inference.preprocessing import PREPROCESSINGS
from dawnbench_tf.refusals import Refusal
from tests.models.weights.test_berts import hugging_face, without
from tests.models.weights.test_resnets import logits, resnet8, write


@pytest.mark.parametrize(
    ("name", "mode"), [("torchvision", "torch"), ("keras_caffe", "caffe"), ("keras_tf", "tf")]
)
def test_standardization_is_that_of_keras_applications(name, mode):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)
    preprocess = tf.keras.applications.imagenet_utils.preprocess_input
    expected = preprocess(pixels.astype(np.float32), "channels_last", mode)
    standardized = preprocessing.standardize(pixels, PREPROCESSINGS[name])
    np.testing.assert_allclose(standardized, expected, atol=1e-4)


@pytest.mark.parametrize("size", [(400, 300), (301, 499), (256, 256), (100, 120)])
@pytest.mark.parametrize(("name", "short"), [("torchvision", 256), ("timm_95", 235)])
def test_a_crop_is_tensorflow_s_antialiased_resize_and_the_center(size, name, short):
    """(width, height); TensorFlow resizes without rounding between the two axes."""
    noise = np.random.default_rng(0).integers(0, 256, (12, 12, 3), np.uint8)
    image = Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)
    content = io.BytesIO()
    image.save(content, "PNG")
    cropped = preprocessing.crop(content.getvalue(), PREPROCESSINGS[name], 224)
    width, height = (int(short * side / min(size)) for side in size)
    method = PREPROCESSINGS[name].interpolation
    pixels = np.asarray(image)
    whole = tf.image.resize(pixels, (height, width), method, antialias=True).numpy()
    top, left = round((height - 224) / 2), round((width - 224) / 2)
    expected = np.clip(whole[top : top + 224, left : left + 224], 0, 255)
    assert np.abs(cropped.astype(float) - expected).max() < 4
    assert np.abs(cropped.astype(float) - expected).mean() < 0.5


@pytest.fixture
def weights(tmp_path):
    return write(tmp_path / "resnet8.safetensors", resnet8())


def test_outputs_are_the_published_network_s(weights):
    loaded = published.load("resnet8_v1_proj", weights, "digits", "", "cifar10")
    images = np.concatenate([image for (image,) in loaded.served.examples[:8]])
    pixels = loaded.data.splits.test.images(slice(8))
    by_hand = (pixels / 255 - (0.4914, 0.4822, 0.4465)) / (0.2023, 0.1994, 0.2010)
    np.testing.assert_allclose(images, by_hand, atol=1e-5)
    expected = logits(resnet8(), images)
    outputs = loaded.served.build("float32")(images)
    np.testing.assert_allclose(outputs, expected, atol=1e-5 * np.abs(expected).max())
    assert len(loaded.served.calibration) == 100


def test_the_entry_says_where_the_weights_come_from(weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.sched_setaffinity", lambda process, cpus: None)
    named = {"model": "resnet8_v1_proj", "weights": str(weights), "task": "digits"}
    misc = infer.infer(Options(**named, runtime="function", examples=20, passes=1)).misc
    assert misc["weights"]["file"] == "resnet8.safetensors" and len(misc["weights"]["sha256"]) == 64
    preprocessed = misc["preprocessing"]
    assert preprocessed["name"] == "akamaster" and preprocessed["scale"] == 255
    assert not {"crop", "interpolation", "shortSide"} & {*preprocessed}  # the digits have one size
    assert misc["recipe"] == {"task": "digits", "model": "resnet8_v1_proj"}
    (path,) = (tmp_path / "infer").glob("resnet8_v1_proj-resnet8-*/not_an_entry/digits/*/*.json")
    reasons = json.loads(path.read_text())["misc"]["violations"]
    assert any("should be at least 98" in reason for reason in reasons)
    assert "only 20 of 500 examples were timed" in reasons


BERT = {"width": 128, "pieces": 206, "positions": 512}  # the pieces are those of qa_mini


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny BERT, its data, and a folder with its files in Hugging Face's form."""
    folder = tmp_path_factory.mktemp("bert")
    recipe = recipes.get("squad/bert_tiny").with_values(task="qa_mini", name="qa_mini/bert")
    data = dataset.open(recipe)
    model = data.network("float32")
    pieces = ["[PAD]", "[unused0]", *data.splits.vocabulary.trained]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    models.load_published(model, write(folder / "model.safetensors", hugging_face(**BERT)))
    return model, data, folder


def test_a_published_reader_answers_as_the_network_it_came_from(bert, monkeypatch):
    model, data, folder = bert
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / "dev-v1.1.json").write_bytes(qa_mini.write_json(100, 2017, "test"))
    file = folder / "model.safetensors"
    loaded = published.load("bert_tiny_span", file, "squad", str(folder), "")
    assert len(loaded.served.examples) == 600
    network = loaded.served.build("float32")
    ours, theirs = (
        [one(list(example), training=False).numpy() for example in source.examples()[:20]]
        for one, source in ((model, data), (network, loaded.data))
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    answers = [
        spans.predictions(few.join(ours), few.splits)
        for few in (data.sample(20)[1], loaded.data.sample(20)[1])
    ]
    assert answers[0] == answers[1] and len(answers[0]) == 20


def test_a_bert_without_head_or_vocabulary_is_refused(bert, tmp_path):
    file = write(tmp_path / "model.safetensors", without("qa_outputs", **BERT))
    with pytest.raises(Refusal, match="^--weights=.*has no vocab.txt beside it"):
        published.load("bert_tiny_span", file, "squad", str(bert[2]), "")
    with pytest.raises(Refusal, match="^--weights=.*has no head for qa_mini"):
        published.load("bert_tiny_span", file, "qa_mini", "", "")


TIMM = {"preprocessing": "timm"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "resnet8_v1_prj"}, "--model=resnet8_v1_prj: should be a model of the catalogue"),
        ({"weights": "gone.pth"}, "--weights=gone.pth: is no file; should be published weights of"),
        ({"task": ""}, "--task: is required with --weights: one of imagenet, cifar10"),
        ({"task": "squad"}, "--task=squad: resnet8_v1_proj takes images"),
        ({"preprocessing": "keras"}, "--preprocessing=keras: should be one of"),
        ({**TIMM, "model": "bert_tiny_span", "task": "squad"}, "--preprocessing=timm: is for im"),
        ({**TIMM, "model": "run", "weights": ""}, "--preprocessing=timm: requires --weights; a ru"),
    ],
)
def test_bad_options_are_one_line(weights, changes, words):
    values = {"model": "resnet8_v1_proj", "weights": str(weights), "task": "digits"}
    with pytest.raises(Refusal, match="^" + re.escape(words)):
        infer.infer(Options(**{**values, **changes}))


def test_weights_of_another_network_name_the_flag(weights):
    with pytest.raises(Refusal, match=r"^--weights=.*it has 9 layers of kind convolution, the net"):
        published.load("resnet20_v1_proj", weights, "digits", "", "")
