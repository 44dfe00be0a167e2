"""Compares logits of the ImageNet ResNets with torchvision's and timm's, given their weights.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    .venv/bin/python scripts/compare_with_pytorch.py

Weights and BN statistics are random, and loaded from PyTorch's files. Prints the largest difference
as a share of the largest logit. Exit status: 1 if a difference is over 1e-4.
"""

import os
import sys
import tempfile

import numpy as np

PAIRS = {  # model of this package -> reference
    "resnet18_v1": "torchvision.resnet18",
    "resnet34_v1": "torchvision.resnet34",
    "resnet50_v1_5": "torchvision.resnet50",
    "resnet101_v1_5": "torchvision.resnet101",
    "resnet152_v1_5": "torchvision.resnet152",
    "resnet26_v1_5": "timm.resnet26",
    "resnet26d": "timm.resnet26d",
    "resnet50d": "timm.resnet50d",
}


def reference(library_and_name):
    """Builds the PyTorch model, with random BN parameters and statistics."""
    import timm
    import torch
    import torchvision

    torch.manual_seed(0)
    library, name = library_and_name.split(".")
    if library == "timm":
        model = timm.create_model(name, pretrained=False)
    else:
        model = getattr(torchvision.models, name)(weights=None)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for values in (module.weight, module.bias, module.running_mean, module.running_var):
                values.data.add_(torch.rand_like(values) / 5)
    return model.eval()


def difference(ours, theirs) -> float:
    """Returns the largest difference of the logits, as a share of the largest logit."""
    other = reference(theirs)  # first: PyTorch 2.14's compiler crashes if TensorFlow is loaded
    import torch

    from dawnbench_tf import models

    model = models.build(ours)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(other.state_dict(), f"{folder}/weights.pth")
        models.load_published(model, f"{folder}/weights.pth")
    images = np.random.default_rng(0).normal(size=(2, 224, 224, 3)).astype("f")
    with torch.no_grad():
        wanted = other(torch.tensor(images.transpose(0, 3, 1, 2))).numpy()
    logits = model(images, training=False).numpy()
    return float(np.abs(logits - wanted).max() / np.abs(wanted).max())


def main() -> int:
    """Prints a line for each pair."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    worst = 0.0
    for ours, theirs in PAIRS.items():
        share = difference(ours, theirs)
        print(f"{ours:16} {theirs:24} {share:.1e}", flush=True)
        worst = max(worst, share)
    return int(not worst < 1e-4)


if __name__ == "__main__":
    sys.exit(main())
