"""Runs definitions of published entries' authors' code, and records training steps; needs torch."""

import ast
import re
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

STEPS, STEPS_PER_EPOCH = 60, 5
LOWER = 0.1  # factor of some rates, at which small networks on random labels multiply rounding
FIXTURES = Path(__file__).parents[1] / "tests/fixtures/source_steps"
COMMITS = {
    "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Training-BaiduNet9": "856ec31",
    "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Inference-BaiduNet8": "8678e0b",
    "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Distributed-Training-BaiduNet9P": "df05b74",
    "wbaek/torchskeleton": "v0.2.1_dawnbench_cifar10_release",
    "fastai/imagenet-fast": "a2ff907",
    "apple/ml-cifar-10-faster": "0b8962a",
    "iyaja/cifar-10-faster": "0009f14",
    "bkj/basenet": "49b2b61",
    "LaurentMazare/deep-models": "5aa353f",
    "diux-dev/imagenet18": "59a8f25",
    "elepherai/KervNets": "63d69ae",  # a fork of wang-chen/KervNets, which is gone
    "wang-chen/kervolution": "e66eaac",
    "KellerJordan/cifar10-airbench": "f1c599c",
    "hiverge/cifar10-speedrun": "5cd49b1",
}
MODULES = ("torch", "numpy", "collections", "functools", "inspect", "itertools", "copy", "math")


def load(sources: Path, name: str, path: str, replaced: dict, **names) -> SimpleNamespace:
    """Runs the definitions of a file: functions, classes, aliases, imports of `MODULES`.

    Args:
      sources: folder of the checkouts.
      name: the checkout, a key of `COMMITS`.
      path: the file.
      replaced: text -> text to put in its place.
      **names: names that are defined before, as what the file imports from its neighbours.
    """
    command = ["git", "-C", str(sources / name), "show", f"{COMMITS[name]}:{path}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for before, after in replaced.items():
        if before not in text:
            raise ValueError(f"{path}: has no {before!r}")
        text = text.replace(before, after)
    scope = {"torch": torch, "nn": nn, "np": np, "F": nn.functional, "partial": partial, **names}
    exec(compile(ast.Module(list(_definitions(text)), []), path, "exec"), scope)
    return SimpleNamespace(**scope)


def _definitions(text):
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name != "_":  # registers itself with a function that is not called
                yield node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names if isinstance(node, ast.Import)]
            if all((module or "").split(".")[0] in MODULES for module in modules):
                yield node
        elif isinstance(node, ast.Assign):
            kinds = ast.Lambda | ast.Tuple | ast.List | ast.Constant
            is_call = re.match(r".* = (namedtuple|node_def)\(", ast.unparse(node))
            if isinstance(node.value, kinds) or is_call:
                yield node


def mirrored(forward):
    """Returns a function of images: the mean of the outputs of the images and their mirrors."""
    return lambda images: (forward(images) + forward(images.flip(-1))) / 2


def batches(count: int, size: int, side: int):
    """Yields `count` batches of images (size, 3, side, side) and labels, as the test draws them."""
    rng = np.random.default_rng(32)
    for _ in range(count):
        images = rng.standard_normal((size, 3, side, side))
        yield torch.tensor(images), torch.tensor(rng.integers(0, 10, size))


def record(name: str, replicas: list, step, logits, size: int, side: int) -> None:
    """Trains a network by its author's step; writes its weights and an evaluation's logits.

    The file is RECIPE.npz, or RECIPE_on_N.npz for N GPUs. It has the moving statistics of BN of one
    GPU after those of another.

    Args:
      name: the recipe's, without its task.
      replicas: the network of each GPU; they share their weights.
      step: function of a batch's images and labels that does one training step.
      logits: function of images that evaluates, with the statistics of the first GPU.
      size: examples of a batch.
      side: height and width of the images.
    """
    model = replicas[0]
    generator = torch.Generator().manual_seed(0)
    for value in model.parameters():  # else a swap of BN's scales or shifts would not show
        if value.requires_grad and value.ndim == 1:
            value.data += 0.2 * torch.rand(value.shape, generator=generator, dtype=value.dtype)
    for value in model.state_dict().values():  # so that files of float32 numbers hold the whole
        value.copy_(value.float())
    arrays = _arrays("before", replicas)
    for replica in replicas:
        replica.train()
    for images, labels in batches(STEPS, size, side):
        step(images, labels)
    arrays |= _arrays("after", replicas)
    model.eval()
    ((images, _),) = batches(1, size, side)
    with torch.no_grad():
        arrays["logits"] = logits(images).numpy().astype(np.float32)
    name += f"_on_{len(replicas)}" if len(replicas) > 1 else ""
    FIXTURES.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(FIXTURES / f"{name}.npz", **arrays)
    print(f"{name}: {sum(value.size for value in arrays.values()):,} numbers")


def _arrays(prefix, replicas):
    states = [replica.state_dict() for replica in replicas]
    arrays = {}
    for key, value in states[0].items():
        if "running" in key:
            value = torch.cat([state[key] for state in states])
        if "num_batches" not in key:
            arrays[f"{prefix} {key}"] = value.numpy().astype(np.float32)
    return arrays
