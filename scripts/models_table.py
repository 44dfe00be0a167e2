"""Writes docs/MODELS.md, the table of all models, from the catalogue and the recipes.

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
    """The whole of docs/MODELS.md."""
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

*For whoever imports a model, or asks which of several look-alikes one is.*

Made by `scripts/models_table.py` from `models/catalog/`; edit those. Parameters are the trainable
ones; of readers, with two words and two characters (100 and 8 for each further one). Multiply-adds
are those of convolutions and dense layers for one image, 32x32 with 10 classes or, from
`resnet18_v1` on, 224x224 with 1000. "before": the activation comes before the convolutions
(pre-activation). A published top-1 is somebody else's, on CIFAR-10's test or ImageNet's validation
set; a table or section is of the source.

"""
NOTES = """
## Choosing one

```python
>>> from dawnbench_tf import models
>>> models.names("wrn*")  # all without a pattern
['wrn_16_8', 'wrn_28_10', 'wrn_40_4']
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

`help(models.build)` has the arguments of all networks, `models.arguments.Overrides` those of single
families, with their types; an argument that a variant has not is refused with those it has.

It works in whichever Keras your `tf.keras` is, Keras 3 or tf-keras (`TF_USE_LEGACY_KERAS=1`), and
touches none of your global settings. Saving keeps weights best: `save_weights`, and `models.build`
to rebuild. `models.load_model(file)` loads a whole `.keras` file, in safe mode, in any process with
the Keras that saved it. Networks made of Keras's layers alone, as ResNets for ImageNet are, need
nothing of this package to be loaded; for the others import `dawnbench_tf.models.layers`, which
registers our layers, and `tf.keras.models.load_model` finds them ([file formats](file_formats.md)).
Load only files of your own. `resnet9_whitened` has statistics to take before training:
`model.get_layer("whitening").adapt(images)`.

Each model is held to its source: parameters and multiply-adds exactly; outputs to
keras.applications or a plain NumPy network (1e-4), to torchvision's and timm's ResNets (1e-6 of the
largest logit, `scripts/compare_with_pytorch.py`), to the seeds' first loss as logged in 2017. Every
kind of model is tested in both layouts, XLA, bfloat16, two mirrored devices and three file formats,
in both Kerases.

## Where others differ

`build` arguments cover each of these, or weights can be carried over as `tests/models/` does it.

- **keras.applications, ResNet50/101/152** are `_v1` with `norm_epsilon=1.001e-5`, and with biases
  in front of BN, which BN takes out again: ours have none, so Keras counts more parameters.
- **keras.applications, ResNet50V2/101V2/152V2** are the `_v2_keras` rows: BN only after the stem's
  pool, each stage's last unit strides, biases in front of additions. Not He et al.'s `_v2`.
- **TensorFlow's padding** (`padding="same"`) at even sizes puts more zeros behind than before;
  Caffe's, Torch's and ours (`"symmetric"`) puts as many. Only layers that stride differ. The `_tf`
  rows have TensorFlow's, as the seeds did; the model garden's networks too: equal at odd sizes.
- **The model garden's ResNet-18 and 34** project in the first stage, where no width changes.
- **v1 and v1.5** are the same network when blocks are basic (18, 34).
- **BN**: momentum 0.9, epsilon 1e-5 (`_tf` rows: 1e-3), as in PyTorch; Keras's are 0.99 and 1e-3.
  Under Keras 3 the moving variance averages biased variances; in recipes' networks unbiased ones.
- **Recipes' networks** have layers of ours where Keras's are slow on CPUs or keep their random
  draws out of checkpoints: convolution, BN, dropout, GELU and leaky ReLU of `models.layers`. They
  compute what Keras's do; `networks.build(variant, args, factories.TRAINING)` makes them.
"""

if __name__ == "__main__":
    MODELS.write_text(page(), encoding="utf-8")
