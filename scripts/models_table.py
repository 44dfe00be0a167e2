"""Writes docs/MODELS.md from the catalogue and the recipes.

.venv/bin/python scripts/models_table.py
"""

from pathlib import Path

from dawnbench_tf import models, recipes
from dawnbench_tf.models import networks

MODELS = Path(__file__).parents[1] / "docs" / "MODELS.md"
COLUMNS = (
    "model",
    "source",
    "block",
    "shortcut where the width changes",
    "activation",
    "parameters",
    "multiply-adds",
    "published top-1",
    "recipes",
)


def page() -> str:
    """Returns the text of docs/MODELS.md."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * 5 + "|--:" * 3 + "|---|"]
    lines += [f"| {' | '.join(_row(models.get(name)))} |" for name in models.names()]
    return INTRODUCTION + "\n".join(lines) + "\n" + NOTES


def _row(variant):
    used = [name for name, recipe in recipes.rows().items() if recipe.model == variant.name]
    published = f"{variant.top1:.2f} % ({variant.top1_source})" if variant.top1 else ""
    return (
        f"`{variant.name}`",
        variant.source,
        *networks.family_of(variant).describe(variant.args),
        f"{variant.parameters:,}",
        f"{variant.multiply_adds:,}" if variant.multiply_adds else "",
        published,
        ", ".join(f"`{name}`" for name in used),
    )


INTRODUCTION = """# The models

*For choosing a model, building it from Python, and telling similar models apart.*

```python
from dawnbench_tf import models

model = models.build("resnet50_v1_5")  # images in, logits out, float32
```

- **Shortcut**: of residual units where the width changes.
- **Activation**: "before" means before the convolutions (pre-activation).
- **Parameters**: trainable ones. Readers are counted with two words and two characters; in BiDAF
  each further word adds 100, each further character 8.
- **Multiply-adds**: of convolutions and dense layers, for one image of 32x32 with 10 classes; from
  `resnet18_v1` on, of 224x224 with 1000 classes.
- **Published top-1**: accuracy that others published, on CIFAR-10's test set or ImageNet's
  validation set. Tables and sections are those of the source.

`scripts/models_table.py` writes this page from `models/catalog/`; edit those.

"""
NOTES = """
## Choosing one

```python
>>> from dawnbench_tf import models
>>> models.names("wrn*")  # all without a pattern
['wrn_16_8', 'wrn_22_6', 'wrn_28_10', 'wrn_40_4']
>>> row = models.get("resnet50_v1_5")  # no TensorFlow is imported until you build
>>> row.parameters, row.multiply_adds, row.num_classes, row.image_size
(25557032, 4089184256, 1000, 224)
>>> row.top1, row.top1_source, row.source
(76.13, 'torchvision, IMAGENET1K_V1', 'Gross & Wilber 2016, fb.resnet.torch')

```

## Using them

```python
import tensorflow as tf

from dawnbench_tf import models

model = models.build("resnet50_v1_5")  # images in, logits out, float32

# A backbone: features before the head, or the map that a stage ends with.
pooled = tf.keras.Model(model.input, model.get_layer("features").output)
maps = tf.keras.Model(model.input, [model.get_layer(f"stage{n}").output for n in (1, 2, 3)])

# Your own head on it.
logits = tf.keras.layers.Dense(5)(model.get_layer("features").output)
mine = tf.keras.Model(model.input, logits)
```

- `help(models.build)` documents the arguments that all models have; `models.arguments.Overrides`
  lists those of single families, with their types. An argument that a model does not have is
  refused with a list of its arguments.
- Models are made of the Keras that your `tf.keras` is, Keras 3 or tf-keras
  (`TF_USE_LEGACY_KERAS=1`). Your global settings are not changed.
- The most portable way to save a model is `save_weights`; `models.build` rebuilds the model.
- `models.load_model(file)` loads a whole `.keras` file, in safe mode, under the Keras that saved it
  ([file formats](file_formats.md)).
- `tf.keras.models.load_model` loads ResNets for ImageNet without this package, as they consist of
  Keras's layers. For other models first `import dawnbench_tf.models.layers`, which registers our
  layers. Load only files that you trust.
- `resnet9_whitened` takes statistics before training:
  `model.get_layer("whitening").adapt(images)`.

## How models are verified

Tests compare each model with its source:

- parameters and multiply-adds with the counts above, exactly;
- outputs with keras.applications or a plain NumPy network (1e-4), with TF-slim's ResNets (1e-10 of
  the largest logit, in float64), and with torchvision's and timm's (1e-6 of the largest logit,
  `scripts/compare_with_pytorch.py`);
- the first training loss with the logs of DAWNBench's seeds of 2017.

Every kind of model is tested in both layouts, with XLA, in bfloat16, on two mirrored devices and in
three file formats, under Keras 3 and tf-keras.

## Differences from other implementations

Arguments of `build` cover each of these; otherwise convert the weights, as `tests/models/` does.

- **keras.applications' ResNet50/101/152** are the `_v1` models with `norm_epsilon=1.001e-5` and
  with biases in front of BN. BN cancels these biases; ours have none, so Keras counts more
  parameters.
- **keras.applications' ResNet50V2/101V2/152V2** are the `_v2_keras` models: BN only after the
  stem's pool, strides in each stage's last unit, biases in front of additions. He et al.'s
  networks are `_v2`.
- **TF-slim's resnet_v1** are the `_v1_slim` models. A stage's last unit skips the pixels that the
  next stage's first unit of `_v1` would skip: with equal weights both give equal logits at odd
  sizes, and at even sizes if the max pool's padding is equal. BN's statistics differ in training.
- **TensorFlow's padding** (`padding="same"`) adds more zeros behind than before at even sizes;
  Caffe's, Torch's and ours (`"symmetric"`) adds equal numbers. Only layers with strides differ. The
  `_tf` models, the max pool of `_v1_slim` and the model garden's networks have TensorFlow's; at odd
  sizes both are equal.
- **The model garden's ResNet-18 and 34** have a projection in the first stage, where no width
  changes.
- **v1 and v1.5** are equal with basic blocks (depths 18 and 34).
- **BN** has momentum 0.9 and epsilon 1e-5 (`_tf` models: 1e-3), as in PyTorch; Keras's defaults are
  0.99 and 1e-3, TF-slim's ResNets have 0.997 and 1e-5. Under Keras 3 the moving variance averages
  biased variances; in the networks that recipes train it averages unbiased ones.
- **Networks that recipes train** have the convolution, BN, dropout, GELU and leaky ReLU of
  `models.layers`, which compute what Keras's do. They are faster on CPUs and save their random
  states in checkpoints. `networks.build(variant, args, factories.TRAINING)` builds such a network.
"""

if __name__ == "__main__":
    MODELS.write_text(page(), encoding="utf-8")
