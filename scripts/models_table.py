"""Writes docs/MODELS.md, the table of all models, from the catalogue and the recipes.

.venv/bin/python scripts/models_table.py
"""

from pathlib import Path

from dawnbench_tf import models, recipes

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
SHORTCUTS = {
    "projection": "1x1",
    "projection_bn": "1x1, BN",
    "pool_pad": "average pool, zero channels",
    "stride_pad": "every other pixel, zero channels",
}
FIXED = {  # families whose rows have one shape: block, shortcut, activation
    "wide_resnets": ("basic", SHORTCUTS["projection"], "ReLU, before"),
    "resnexts": ("bottleneck, 3x3 in groups", SHORTCUTS["projection_bn"], "ReLU"),
    "densenets": ("1x1, 3x3", "all before, concatenated", "ReLU, before"),
}
VERSIONS = {  # of imagenet_resnets: with bottlenecks, shortcut, activation
    "v1": ("stride in the first 1x1", SHORTCUTS["projection_bn"], "ReLU"),
    "v1.5": ("stride in the 3x3", SHORTCUTS["projection_bn"], "ReLU"),
    "v1.5d": ("stride in the 3x3", "average pool, 1x1, BN", "ReLU"),
    "v2": ("stride in the 3x3", SHORTCUTS["projection"], "ReLU, before"),
    "v2_keras": ("stride in the last unit's 3x3", "1x1 with bias", "ReLU, before"),
}


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
        *_shape(variant),
        f"{variant.parameters:,}",
        f"{variant.multiply_adds:,}" if variant.multiply_adds else "",
        published,
        ", ".join(f"`{name}`" for name in used),
    )


def _shape(variant):
    """Block, shortcut and activation of a row, in words."""
    args = variant.args
    if variant.family == "readers":
        return f"LSTMs both ways, {args.get('hidden', 100)} wide", "highway", "ReLU, tanh"
    if variant.family in FIXED:
        return FIXED[variant.family]
    if variant.family == "fast_resnets":
        residual = ("two 3x3", "none: pools between")
        return (*residual, "CELU 0.3, ghost BN" if args.get("whitened") else "ReLU")
    if variant.family == "imagenet_resnets":
        strided, shortcut, activation = VERSIONS[args.get("version", "v1.5")]
        return (
            "basic" if args["depth"] in (18, 34) else f"bottleneck, {strided}",
            shortcut,
            activation,
        )
    block = args.get("block", "basic")
    if block == "bottleneck":
        block += f", stride in the {args.get('strided', '3x3')}"
    if args.get("final_survival", 1) < 1:
        block += f", survival to {args['final_survival']}"
    slope = args.get("leaky_slope")
    activation = f"leaky ReLU {slope}" if slope else "ReLU"
    before = ", before" if args.get("preactivation") else ""
    return block, SHORTCUTS[args.get("shortcut", "projection_bn")], activation + before


INTRODUCTION = """# The models

Made by `scripts/models_table.py` from `models/catalog.py`; edit those. Parameters are the trainable
ones; of readers, with two words and two characters (100 and 8 for each further one). Multiply-adds
are those of convolutions and dense layers for one image, 32x32 with 10 classes or, from
`resnet18_v1` on, 224x224 with 1000. "before": the activation comes before the convolutions
(pre-activation). A published top-1 is somebody else's, on CIFAR-10's test or ImageNet's validation
set; a table or section is of the source.

"""
NOTES = """
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
"""

if __name__ == "__main__":
    MODELS.write_text(page(), encoding="utf-8")
