"""Runs definitions of the code of published entries' authors, from git checkouts.

May need torch, which the code needs.
"""

import ast
import re
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

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
    exec(compile(ast.Module(list(_definitions(text)), []), path, "exec"), scope)  # noqa: S102
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
