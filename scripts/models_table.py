"""Generates docs/MODELS.md, the table of all models, from the catalogue and the recipes.

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
    """Returns the content of docs/MODELS.md."""
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

*For choosing a model, building it, and telling it from those of other libraries.*

```python
from dawnbench_tf import models

model = models.build("resnet50_v1_5")  # images in, logits out, float32
```

Columns of the table:

- **activation**: "before" means before the convolutions (pre-activation).
- **parameters**: trainable ones; those of readers with two words and two characters (100 and 8 for
  each further one).
- **multiply-adds**: those of convolutions and dense layers for one image, 32x32 with 10 classes or,
  from `resnet18_v1` on, 224x224 with 1000.
- **published top-1**: by others, on CIFAR-10's test set or ImageNet's validation set; tables and
  sections are those of the source.

`scripts/models_table.py` generates this page from `models/catalog/`.

"""
NOTES = """
## Choose a model

```python
>>> from dawnbench_tf import models
>>> models.names("wrn*")  # without a pattern: all names
['wrn_16_8', 'wrn_28_10', 'wrn_40_4']
>>> row = models.get("resnet50_v1_5")  # does not import TensorFlow
>>> row.parameters, row.multiply_adds, row.num_classes, row.image_size
(25557032, 4089184256, 1000, 224)
>>> row.top1, row.top1_source, row.source
(76.13, 'torchvision, IMAGENET1K_V1', 'Gross & Wilber 2016, fb.resnet.torch')

```

## Build and use a model

```python
import tensorflow as tf

from dawnbench_tf import models

model = models.build("resnet50_v1_5")  # images in, logits out, float32

# A backbone: the features before the head, or the last feature map of each stage.
pooled = tf.keras.Model(model.input, model.get_layer("features").output)
maps = tf.keras.Model(model.input, [model.get_layer(f"stage{n}").output for n in (1, 2, 3)])

# A head of your own.
logits = tf.keras.layers.Dense(5)(model.get_layer("features").output)
mine = tf.keras.Model(model.input, logits)
```

`help(models.build)` lists the arguments of all networks, `models.arguments.Overrides` those of
single families, with their types. An argument that a variant does not have is refused with a list
of those it has.

- **Keras.** The models work in Keras 3 and in tf-keras (`TF_USE_LEGACY_KERAS=1`), whichever your
  `tf.keras` is, and change no global setting.
- **Weights** are best saved with `save_weights`; `models.build` rebuilds the model.
- **Whole `.keras` files**: `models.load_model(file)` loads them in safe mode, in any process with
  the Keras that saved them. Networks that consist of Keras's layers alone, as ResNets for ImageNet
  do, load without this package. For the others import `dawnbench_tf.models.layers`, which registers
  this package's layers for `tf.keras.models.load_model` ([file formats](file_formats.md)). Load
  only files of your own.
- **`resnet9_whitened`** needs statistics before training:
  `model.get_layer("whitening").adapt(images)`.

Each model is tested against its source: parameters and multiply-adds exactly; outputs against
keras.applications or a plain NumPy network (1e-4), and against torchvision's and timm's ResNets
(1e-6 of the largest logit, `scripts/compare_with_pytorch.py`); the first loss against the seeds'
logs of 2017. Every kind of model is tested in both layouts, XLA, bfloat16, two mirrored devices and
three file formats, in both versions of Keras.

## Differences from other libraries

Arguments of `build` cover each of these, or weights can be converted as in `tests/models/`.

- **keras.applications, ResNet50/101/152** are `_v1` with `norm_epsilon=1.001e-5`, and with biases
  in front of BN, which BN removes again: these models have none, so Keras counts more parameters.
- **keras.applications, ResNet50V2/101V2/152V2** are the `_v2_keras` rows: BN only after the stem's
  pool, a stride in each stage's last unit, biases in front of additions. They are not He et al.'s
  `_v2`.
- **TensorFlow's padding** (`padding="same"`) at even sizes puts more zeros behind than before;
  Caffe's, Torch's and this library's (`"symmetric"`) puts the same number on both sides. Only
  layers with a stride differ. The `_tf` rows have TensorFlow's padding, as the seeds did; so do the
  model garden's networks. At odd sizes both are equal.
- **The model garden's ResNet-18 and 34** project in the first stage, where no width changes.
- **v1 and v1.5** are the same network if blocks are basic (18, 34).
- **BN**: momentum 0.9, epsilon 1e-5 (`_tf` rows: 1e-3), as in PyTorch; Keras's are 0.99 and 1e-3.
  Under Keras 3 the moving variance averages biased variances; in recipes' networks unbiased ones.
- **Recipes' networks** have this package's layers where Keras's are slow on CPUs or do not save
  their random state in checkpoints: convolution, BN, dropout, GELU and leaky ReLU of
  `models.layers`. They compute the same as Keras's; `networks.build(variant, args,
  factories.TRAINING)` builds them.
"""

if __name__ == "__main__":
    MODELS.write_text(page(), encoding="utf-8")
