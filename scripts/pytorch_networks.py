"""ResNet-20, airbench94 and timm's ResNet-50 in PyTorch, and their training steps."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class ResNet20(nn.Module):
    """ResNet-20 of DAWNBench's PyTorch seeds: projections with BN where a stage begins."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16))
        widths = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2
        widths += [(32, 64, 2)] + [(64, 64, 1)] * 2
        self.units = nn.ModuleList(nn.ModuleList(_unit(*width)) for width in widths)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        """Returns the logits of images (NCHW)."""
        x = torch.relu(self.stem(x))
        for branch, shortcut in self.units:
            x = torch.relu(branch(x) + shortcut(x))
        return self.head(x.mean((2, 3)))


def _unit(inputs, filters, stride):
    def conv(channels, size, step):
        layer = nn.Conv2d(channels, filters, size, step, size // 2, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(filters))

    branch = nn.Sequential(conv(inputs, 3, stride), nn.ReLU(), conv(filters, 3, 1))
    return branch, conv(inputs, 1, stride) if stride > 1 else nn.Identity()


def _airbench94():
    """Builds Jordan's airbench94; its frozen whitening filters are left random."""
    layers = [nn.Conv2d(3, 24, 2), nn.GELU()]
    layers[0].weight.requires_grad = False
    for inputs, filters in ((24, 64), (64, 256), (256, 256)):
        for channels, pool in ((inputs, [nn.MaxPool2d(2)]), (filters, [])):
            norm = nn.BatchNorm2d(filters, eps=1e-12, momentum=0.4)
            norm.weight.requires_grad = False
            conv = nn.Conv2d(channels, filters, 3, padding=1, bias=False)
            layers += [conv, *pool, norm, nn.GELU()]
    return nn.Sequential(*layers, nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, 10, bias=False))


def _resnet50():
    import timm

    return timm.create_model("resnet50")


NETWORKS = {
    "resnet20": (ResNet20, 272_474),
    "airbench94": (_airbench94, 1_971_352),
    "resnet50": (_resnet50, 25_557_032),
}


def step(network: str, precision: str, compiled: bool) -> Callable[..., None]:
    """Returns a training step, (images, labels) -> None, in channels_last.

    In mixed_bfloat16 the ResNets use autocast; airbench94 is converted to bfloat16 except for its
    BN, as by its author. Each form is the faster of the two on CPUs.

    Args:
      network: a key of NETWORKS.
      precision: float32 or mixed_bfloat16.
      compiled: whether to use torch.compile.
    """
    make, parameters = NETWORKS[network]
    model = make().to(DEVICE, memory_format=torch.channels_last)
    pure = network == "airbench94" and precision == "mixed_bfloat16"
    if pure:
        model = model.to(torch.bfloat16)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.float()
    trained = [p for p in model.parameters() if p.requires_grad]
    if sum(p.numel() for p in trained) != parameters:
        raise SystemExit(f"{network}: not the network that ours is")
    optimizer = torch.optim.SGD(trained, 0.001, momentum=0.9, nesterov=True, fused=True)
    forward = torch.compile(model) if compiled else model

    def train(images, labels):
        optimizer.zero_grad(set_to_none=True)
        if pure:
            logits = forward(images.to(torch.bfloat16))
        else:
            with torch.autocast(DEVICE, torch.bfloat16, enabled=precision != "float32"):
                logits = forward(images)
        functional.cross_entropy(logits.float(), labels, label_smoothing=0.2).backward()
        optimizer.step()

    return train
