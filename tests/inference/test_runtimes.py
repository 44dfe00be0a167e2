"""Every runtime gives the model's answers; exports are folded and of one shape."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset, qa_mini
from dawnbench_tf.inference import exports, runtimes
from dawnbench_tf.inference.runtimes import RUNTIMES
from dawnbench_tf.inference.serving import Served
from dawnbench_tf.models import factories, networks
from dawnbench_tf.models.layers import views
from dawnbench_tf.refusals import Refusal
from tests.models.graphs import as_graph, random_reader
from tests.smallest import smallest

# Rounding of float32 over some dozens of layers; logits of half precision would be 1e-3 off.
TOLERANCE = 1e-5  # of the largest logit
LONG = pytest.mark.long
ALL = [(name, precision) for name, row in RUNTIMES.items() for precision in row.precisions]


def trained(name, precision):
    """Builds a network of the layers that runs have."""
    variant = models.get(name)
    return networks.build(variant, {**variant.args, "dtype": precision}, factories.TRAINING)


def served(name):
    """Returns an untrained model with random BN statistics, and random images."""
    random = np.random.default_rng(0)
    tf.keras.utils.set_random_seed(0)
    reference = trained(name, "float64")
    weights = reference.get_weights()
    weights = [w + random.uniform(0.1, 0.5, w.shape) if w.ndim == 1 else w for w in weights]
    reference.set_weights(weights)

    def build(precision):
        model = trained(name, precision)
        model.set_weights(weights)
        return model

    shape = (1, *reference.input_shape[1:])
    images = [(random.normal(size=shape).astype(np.float32),) for _ in range(8)]
    return Served(build, images, images, fixed_shape=True), reference


@pytest.fixture(scope="module")
def small():
    return served("resnet8_v1_pad")


@pytest.mark.parametrize(("name", "precision"), ALL)
def test_a_runtime_gives_the_model_s_answers(small, name, precision):
    model, reference = small
    runtime = runtimes.build(name, model, precision, threads=1)
    answers = [runtime.call(example) for example in model.examples]
    again = runtime.call(model.examples[0])
    expected = [reference(x.astype(np.float64), training=False).numpy() for (x,) in model.examples]
    error = np.abs(np.concatenate(answers) - np.concatenate(expected)).max()
    least = {"float32": TOLERANCE, "bfloat16": 0.05, "int8": 0.2}[precision]
    assert error <= least * np.abs(expected).max()
    assert answers[0].shape == (1, 10) and np.array_equal(again, answers[0])
    assert not np.array_equal(answers[0], answers[1])  # each example's own memory


@pytest.mark.parametrize("name", ["keras", "litert", "onnx"])  # the others take one's export
def test_a_runtime_sees_all_test_views(small, name):
    model, _ = small

    def build(precision):
        return views.with_views(model.build(precision), "mirror_and_shifts", "NHWC")

    runtime = runtimes.build(name, model._replace(build=build), "float32", threads=1)
    reference, (example, *_) = build("float32"), model.examples
    np.testing.assert_allclose(runtime.call(example), reference(example[0]), atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["resnet20_tf", "resnet56_tf"])
def test_lite_rt_is_as_exact_as_float32_on_a_deep_network(name):
    """Untrained, a ResNet-56 has logits in the hundreds; errors are far below half precision's."""
    model, reference = served(name)
    (image,) = model.examples[0]
    expected = reference(image.astype(np.float64), training=False).numpy()
    lite = runtimes.build("litert", model, "float32", 1).call((image,))
    keras = model.build("float32")(image, training=False).numpy()
    for answer in (lite, keras):
        assert np.abs(answer - expected).max() <= TOLERANCE * np.abs(expected).max()
    half = expected.astype(np.float16).astype(np.float64)
    assert np.abs(half - expected).max() > 10 * np.abs(lite - expected).max()


def test_gelu_is_known_everywhere():
    """TensorFlow 2.20 implements GELU with erfc, which ONNX lacks."""
    model, reference = served("airbench94")
    (image,) = model.examples[0]
    expected = reference(image.astype(np.float64), training=False).numpy()
    for runtime in ("litert", "onnx"):
        answer = runtimes.build(runtime, model, "float32", 1).call((image,))
        assert np.abs(answer - expected).max() <= TOLERANCE * np.abs(expected).max(), runtime


def test_lite_rt_s_export_is_folded_and_of_batch_size_1(small):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    content = exports.flatbuffer(small[0], "float32")
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    counts = Counter(item["op_name"] for item in interpreter._get_ops_details())
    assert counts["CONV_2D"] == 7 and counts["ADD"] == 3  # the sums of its blocks, no BN
    assert not {"MUL", "SUB", "RSQRT", "FUSED_BATCH_NORM"} & set(counts)
    assert [list(item["shape"]) for item in interpreter.get_input_details()] == [[1, 32, 32, 3]]
    with pytest.raises(Refusal, match="LiteRT's converter fixes the length of text"):
        exports.flatbuffer(small[0]._replace(fixed_shape=False), "float32")


def test_the_onnx_export_is_folded_and_of_batch_size_1(small):
    import onnx

    graph = onnx.load_from_string(exports.onnx(small[0], "float32")).graph
    counts = Counter(node.op_type for node in graph.node)
    assert counts["Conv"] == 7 and counts["Add"] == 3 and "BatchNormalization" not in counts
    shape = [size.dim_value for size in graph.input[0].type.tensor_type.shape.dim]
    assert shape == [1, 32, 32, 3]


def test_batches_are_of_the_size_asked_for(small):
    batch = np.concatenate([image for (image,) in small[0].examples[:4]])
    model = small[0]._replace(examples=[(batch,)])
    assert runtimes.build("litert", model, "float32", 1).call((batch,)).shape == (4, 10)


@pytest.mark.long
def test_int8_is_a_quarter_of_the_size(small):
    whole, small_one = (
        runtimes.build("litert", small[0], precision, 1).size for precision in ("float32", "int8")
    )
    assert 2.5 < whole / small_one < 4.5


@pytest.mark.parametrize(
    ("name", "words"),
    [("xla", "XLA compiles anew for each"), ("litert", "its converter fixes the")],
)
def test_texts_of_any_length_are_refused_in_one_line(small, name, words):
    with pytest.raises(Refusal, match=f"^--runtime={name}: {words} length"):
        runtimes.build(name, small[0]._replace(fixed_shape=False), "float32", 1)


@pytest.mark.parametrize(("name", "package"), [("onnx", "tf2onnx"), ("openvino", "openvino")])
def test_a_runtime_that_is_not_installed_says_how_to(small, monkeypatch, name, package):
    find = runtimes.find_spec
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None if name == package else find(name))
    root = Path(runtimes.__file__).parents[3]  # of this clone: no release is published
    install = f'pip install "{root}[runtimes]" has all'
    words = f"--runtime={name}: {package} is not installed; {install}"
    with pytest.raises(Refusal, match=re.escape(words)):
        runtimes.build(name, small[0], "float32", 1)


@pytest.fixture(scope="module")
def one_export():
    """Converts each model to ONNX once, for both ONNX Runtime and OpenVINO."""
    contents, export = {}, exports.onnx

    def cached(served, precision):
        if (id(served), precision) not in contents:
            # It stays there: another one would get its id.
            contents[id(served), precision] = served, export(served, precision)
        return contents[id(served), precision][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exports, "onnx", cached)
        yield


@pytest.fixture(scope="module", params=[pytest.param(0, marks=LONG), 68])
def bert(request, one_export):
    """A served BERT with one window a question, or several, and its logits of 3 examples."""
    recipe = recipes.get("squad/bert_tiny").with_values(
        sequence_length=request.param or 384, document_stride=9
    )
    data = qa_mini.generate(6, 6, seed=1, form=recipe.data)
    sizes = {"pieces": 2 + len(data.vocabulary.trained), "cls_id": 3, "sep_id": 4}
    sizes = {**smallest("bert_tiny_span"), **sizes}
    examples = dataset.from_splits(recipe, data).examples()[:3]
    windows = [len(contexts) for contexts, _ in examples]
    assert (max(windows) > 1) == bool(request.param)
    build = lambda _: random_reader("bert_tiny_span", 0.1, **sizes)  # noqa: E731
    served = Served(build, examples, examples, False, fixed_batch=not request.param)
    return served, logits(served)


READERS = ("drqa", "bidaf", "qanet", "fastfusionnet", "qanet_tpu")


@pytest.fixture(scope="module", params=[pytest.param(name, marks=LONG) for name in READERS])
def reader(request, one_export):
    """A served reader of texts of any length, without tags, and its logits of 3 examples."""
    data = qa_mini.generate(6, 6, seed=1)
    family = networks.family_of(models.get(request.param))
    sizes = {"trained_words": 2 + len(data.vocabulary.trained), "vector_width": 12}
    if "context_characters" in family.reads:
        sizes["characters"] = 2 + len(data.vocabulary.characters)
    sizes = {**smallest(request.param), **sizes}
    recipe = replace(recipes.get("qa_mini/bidaf"), model=request.param)
    examples = dataset.from_splits(recipe, data).examples()[:3]
    build = lambda _: random_reader(request.param, 0.1, **sizes)  # noqa: E731
    served = Served(build, examples, examples, False)
    return served, logits(served)


def logits(served):
    """Returns the model's own logits."""
    return [*map(as_graph(served.build("float32")), served.examples)]


READERS_RUNTIMES = pytest.mark.parametrize(
    "runtime", ["onnx", *(pytest.param(name, marks=LONG) for name in ("function", "openvino"))]
)


@READERS_RUNTIMES
def test_a_bert_s_logits_are_the_model_s_in_one_window_and_in_several(bert, runtime):
    agree(runtime, *bert)


@READERS_RUNTIMES
def test_a_reader_s_logits_are_the_model_s(reader, runtime):
    agree(runtime, *reader)


def agree(runtime, served, wanted):
    called = runtimes.build(runtime, served, "float32", 1)
    for example, expected in zip(served.examples, wanted, strict=True):
        assert np.abs(expected).max() > 0.01
        np.testing.assert_allclose(called.call(example), expected, atol=1e-4)
