"""URLs of published weights by publisher and model; a name states the start of its SHA-256."""

import hashlib
import os
import re
from pathlib import Path

import tensorflow as tf

_CIFAR = "https://github.com/akamaster/pytorch_resnet_cifar10/raw/master/pretrained_models/"
_TORCHVISION = "https://download.pytorch.org/models/"
PUBLISHERS = {  # publisher -> model -> URL
    "torchvision": {  # IMAGENET1K_V1, whose accuracies `models.get(name).top1` states
        "resnet18_v1": f"{_TORCHVISION}resnet18-f37072fd.pth",
        "resnet34_v1": f"{_TORCHVISION}resnet34-b627a593.pth",
        "resnet50_v1_5": f"{_TORCHVISION}resnet50-0676ba61.pth",
        "resnet101_v1_5": f"{_TORCHVISION}resnet101-63fe2227.pth",
        "resnet152_v1_5": f"{_TORCHVISION}resnet152-394f9c45.pth",
    },
    "torchvision_v2": {  # IMAGENET1K_V2
        "resnet50_v1_5": f"{_TORCHVISION}resnet50-11ad3fa6.pth",
        "resnet101_v1_5": f"{_TORCHVISION}resnet101-cd907fc2.pth",
        "resnet152_v1_5": f"{_TORCHVISION}resnet152-f82ba261.pth",
    },
    "akamaster": {  # CIFAR-10
        "resnet20_v1_pad": f"{_CIFAR}resnet20-12fca82f.th",
        "resnet32_v1_pad": f"{_CIFAR}resnet32-d509ac18.th",
        "resnet44_v1_pad": f"{_CIFAR}resnet44-014dd654.th",
        "resnet56_v1_pad": f"{_CIFAR}resnet56-4bfd9763.th",
    },
}


def find(publisher: str, model: str, download: bool) -> Path:
    """Returns the path of a publisher's file of a model in Keras's cache."""
    # ValueError: there is none, or its SHA-256 is another. OSError: the download failed.
    files = PUBLISHERS[publisher]
    if model not in files:
        text = f"should be the weights of {model}, which `{publisher}` does not have"
        hint = "a model of another name takes the path of a file"
        raise ValueError(f"`file` {text}; it has {', '.join(files)}; {hint}")
    url = files[model]
    name = url.rpartition("/")[2]
    path = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser() / "models" / name
    if not path.is_file():
        if not download:
            raise ValueError(f"`file` should be at {path}; download=True fetches {url}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)  # without it Keras uses /tmp
            tf.keras.utils.get_file(name, url, cache_subdir="models", cache_dir=path.parents[1])
        except Exception as error:  # Keras raises Exception itself
            reason = " ".join(str(error).split())[:200]
            raise OSError(f"{url} can't be downloaded ({reason}); save it as {path}") from None
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    start = re.findall(r"-([0-9a-f]{8})\.", name)[0]
    if not digest.startswith(start):
        raise ValueError(f"`file`: SHA-256 of {path} should begin with {start}; delete the file")
    return path
