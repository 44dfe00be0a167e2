"""Records training steps of the code of published entries' authors, for tests to compare ours with.

    .venv/bin/python scripts/source_steps.py SOURCES    # needs torch, and in SOURCES git checkouts
                                                        # named as the keys of `source_code.COMMITS`

The authors' own functions build the network, the optimizer and the schedule. Only fastai's cycles
are rewritten, without the step by which the momentum of fastai 0.7 leads. All is in float64, with
fewer channels, which are replaced in the text or are arguments. tests/fixtures/source_steps has,
for each recipe, the weights before and after 60 steps and the logits of an evaluation.
"""

import math
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from source_code import STEPS_PER_EPOCH, load, record
from torch import nn

LOWER = 0.1  # factor of some rates, at which small networks on random labels multiply rounding


def mirrored(forward):
    """Returns a function of images: the mean of the outputs of the images and their mirrors."""
    return lambda images: (forward(images) + forward(images.flip(-1))) / 2


def trainer(model, optimizer, forward=None, reduction="mean", update=lambda: None):
    """Returns a step of a loop that its author wrote out: forward, backward, update.

    `update` sets the optimizer's learning rate and momentum.
    """

    def step(images, labels):
        logits = (forward or model)(images)
        nn.functional.cross_entropy(logits, labels, reduction=reduction).backward()
        update()
        optimizer.step()
        model.zero_grad()

    return step


def baidunet9(sources: Path) -> None:
    """training.py, torch_backend.py, utils.py of CIFAR10-Training-BaiduNet9."""
    name, size = "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Training-BaiduNet9", 16
    utils = load(sources, name, "utils.py", {})
    backend = load(sources, name, "torch_backend.py", {}, **vars(utils))
    training = load(sources, name, "training.py", {}, **vars(backend))
    graph = training.net({"prep": 4, "layer1": 8, "layer2": 8, "layer3": 8})
    graph["pool"] = nn.AdaptiveMaxPool2d(1)  # PyTorch 1.0 pooled a map whole that is under 8x8
    model = backend.Network(graph).double()
    schedule = utils.PiecewiseLinear([0, 5, 24], [0, 0.4, 0.001])
    optimizer = backend.SGD(
        backend.trainable_params(model),
        lr=lambda count: schedule(count / STEPS_PER_EPOCH) / size,
        momentum=0.9,
        weight_decay=5e-4 * size,
        nesterov=True,
    )

    def forward(images):
        return model({"input": images})["classifier"]

    record("baidunet9", model, trainer(model, optimizer, forward, "sum"), forward, size, 16)


def baidunet8(sources: Path) -> None:
    """BaiduNet8.py of CIFAR10-Inference-BaiduNet8, with the optimizer of its train.py."""
    name = "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Inference-BaiduNet8"
    small = {"256": "8", "128": "8", "64": "4"}
    model = load(sources, name, "BaiduNet8.py", small).BaiduNet8().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * LOWER, momentum=0.9, weight_decay=5e-4)
    record("baidunet8", model, trainer(model, optimizer), model, 8, 32)


def resnet9_mazare(sources: Path) -> None:
    """cifar-10/train.py of deep-models."""
    train = load(sources, "LaurentMazare/deep-models", "cifar-10/train.py", {})
    model = train.ResNet9(4, 8, 8, 8).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    record("resnet9_mazare", model, trainer(model, optimizer), model, 8, 32)


def resnet9_kakao(sources: Path) -> None:
    """bin/dawnbench/cifar10.py of torchskeleton, with its schedule and optimizer."""
    name, size = "wbaek/torchskeleton", 16
    parts = [
        load(sources, name, f"skeleton/{path}.py", {}, LOGGER=None)
        for path in ("nn/modules/modules", "optim/optimizers", "optim/scheduler")
    ]
    skeleton = SimpleNamespace(nn=parts[0])
    small = {"(3, 64,": "(3, 4,", "(64, 128": "(4, 8", "128, 128": "8, 8", "(128, 256": "(8, 8"}
    small |= {"256, 256": "8, 8", "(256, 128": "(8, 8", "(128, num_class": "(8, num_class"}
    script = load(sources, name, "bin/dawnbench/cifar10.py", small, skeleton=skeleton)
    model = script.build_network().double()
    schedule = parts[2].get_change_scale(
        parts[2].get_piecewise([0, 4, 25], [0.025, 0.4, 0.001]), 1.0 / size
    )
    optimizer = parts[1].ScheduledOptimizer(
        list(model.parameters()),
        torch.optim.SGD,
        steps_per_epoch=STEPS_PER_EPOCH,
        lr=schedule,
        momentum=0.9,
        weight_decay=5e-4 * size,
        nesterov=True,
    )
    step = trainer(model, optimizer, reduction="sum", update=optimizer.update)
    record("resnet9_kakao", model, step, mirrored(model), size, 14)


def baidunet9p(sources: Path) -> None:
    """BaiduNet.py of CIFAR10-Distributed-Training-BaiduNet9P, with one cycle of fastai 1.0.52.

    Its AdamW: all weights times 1 - rate x decay, then PyTorch's Adam. Mixup is of the batches.
    """
    small = {"384": "8", "256": "8", "128": "8", "64": "4", "F.avg_pool2d(out, 8)": "out"}
    name = "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Distributed-Training-BaiduNet9P"
    model = load(sources, name, "BaiduNet.py", small).BaiduNet9P().double()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99))
    total, count, peak = 24 * STEPS_PER_EPOCH, 0, 0.0052 * LOWER
    rising = int(total * 0.41)

    def annealed(start, end, share):  # fastai's annealing_cos
        return end + (start - end) / 2 * (np.cos(np.pi * share) + 1)

    def advance():
        nonlocal count
        (group,) = optimizer.param_groups
        if count < rising:
            share, rates, momenta = count / rising, (peak / 25, peak), (0.95, 0.85)
        else:
            share = (count - rising) / (total - rising)
            rates, momenta = (peak, peak / 25e4), (0.85, 0.95)
        group["lr"] = annealed(*rates, share)
        group["betas"] = annealed(*momenta, share), 0.99
        for weight in model.parameters():
            weight.data.mul_(1 - 0.42 * group["lr"])
        count += 1

    # The decay precedes the gradient in fastai's loop, which is computed with the weights before.
    record("baidunet9p", model, trainer(model, optimizer, update=advance), model, 16, 32)


def wrn_22_6(sources: Path) -> None:
    """cifar10/models/wideresnet.py of imagenet-fast, with one cycle of fastai 0.7."""
    name = "fastai/imagenet-fast"
    network = load(sources, name, "cifar10/models/wideresnet.py", {}, math=math)
    model = network.WideResNet(depth=10, num_classes=10).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.5, momentum=0.9, weight_decay=1e-4)
    total, count, peak = 30 * STEPS_PER_EPOCH, 0, 1.5 * LOWER**2
    half = int(total * (1 - 20 / 100) / 2)

    def advance():  # `calc_lr` and `calc_mom` of CircularLR_beta
        nonlocal count
        share = count / half if count <= half else 1 - (count - half) / half
        rate, momentum = peak * (1 + share * 19) / 20, 0.95 + share * (0.85 - 0.95)
        if count > 2 * half:
            share = (count - 2 * half) / (total - 2 * half)
            rate, momentum = peak * (1 + share * (1 - 100) / 100) / 20, 0.95
        optimizer.param_groups[0].update(lr=rate, momentum=momentum)
        count += 1

    record("wrn_22_6", model, trainer(model, optimizer, update=advance), model, 16, 16)


def _apple_network(sources: Path, repository: str, splits: int, activation):
    """Returns utils.py of ml-cifar-10-faster or its copy, and the network of its script."""
    old = {
        "len(node) is 3": "len(node) == 3",
        "@cache(None)": "",
        # arguments in the order of PyTorch 1.3
        "dw.add_(weight_decay, w)": "dw.add_(w, alpha=weight_decay)",
        "dw.add_(momentum, v)": "dw.add_(v, alpha=momentum)",
    }
    utils = load(sources, repository, "utils.py", old)
    rng = torch.Generator().manual_seed(1)
    vectors = torch.linalg.qr(torch.randn(27, 27, generator=rng, dtype=torch.float64))[0]
    return utils, utils.build_network(
        channels={"prep": 4, "layer1": 8, "layer2": 8, "layer3": 8},
        extra_layers=(),
        res_layers=("layer1", "layer3"),
        conv_pool_block=utils.conv_pool_block_pre,
        prep_block=partial(
            utils.whitening_block,
            eigen_values=torch.linspace(3, 0.1, 27, dtype=torch.float64),
            eigen_vectors=vectors.reshape(27, 3, 3, 3),
        ),
        scale=1 / 16,
        types={
            nn.ReLU: activation,
            utils.BatchNorm: partial(utils.GhostBatchNorm, num_splits=splits, weight=False),
        },
    )


def _apple(sources: Path, repository: str, recipe: str, epochs: int, splits: int, activation):
    """The settings of the script on one device, with a lower rate."""
    size, scaler = 16, 1.5 * LOWER**2  # shifts have 64 times this
    utils, net = _apple_network(sources, repository, splits, activation)
    model = utils.Network(net, utils.label_smoothing_loss(0.2)).double()
    is_bias = utils.group_by_key(
        ("bias" in key, value) for key, value in utils.trainable_params(model).items()
    )
    settings = [
        {
            "lr": utils.lr_schedule(
                [0, epochs / 5, epochs - 2],
                [0.0, scaler * rate, scaler * 0.1 * rate],
                size,
                STEPS_PER_EPOCH,
            ),
            "weight_decay": utils.Const(5e-4 * scaler * size / rate),
            "momentum": utils.Const(0.9),
        }
        for rate in (1.0, 64)
    ]
    optimizer = utils.SGDOpt(*settings, weight_params=is_bias[False], bias_params=is_bias[True])

    def step(images, labels):
        # Split s of ghost BN has the examples s, s + splits, ...; ours are one after another.
        order = torch.arange(size).reshape(splits, -1).t().reshape(-1)
        outputs = model({"input": images[order], "target": labels[order]})
        model.zero_grad()
        model.loss(outputs)["loss"].sum().backward()
        optimizer.step()

    def forward(images):
        return model({"input": images})["logits"]

    record(recipe, model, step, mirrored(forward), size, 32)


def resnet9_apple(sources: Path) -> None:
    """ml-cifar-10-faster, 16 examples in a group: here 8."""
    _apple(sources, "apple/ml-cifar-10-faster", "resnet9_apple", 18, 2, partial(nn.CELU, 0.3))


def resnet9_mish(sources: Path) -> None:
    """iyaja/cifar-10-faster, 32 examples in a group: here 4."""
    name = "iyaja/cifar-10-faster"
    script = load(
        sources,
        name,
        "fast_cifar_10_distributed.py",
        {"ctx.saved_variables": "ctx.saved_tensors", "@script\n": ""},
        Module=nn.Module,
    )
    _apple(sources, name, "resnet9_mish", 14, 4, script.MishJit)


def basenet(sources: Path) -> None:
    """examples/cifar10.py and basenet/ of bkj/basenet; float64 in place of half precision."""
    name = "bkj/basenet"
    small = {"x.half()": "x", "512": "16", "256": "8", "128": "8", "64": "4"}
    lr = load(sources, name, "basenet/lr.py", {})
    net = load(sources, name, "basenet/basenet.py", {}, LRSchedule=lr.LRSchedule)
    script = load(sources, name, "examples/cifar10.py", small, BaseNet=net.BaseNet)
    model = script.ResNet18().double()
    schedule = lr.LRSchedule.linear_cycle(
        lr_init=0.1 * LOWER, low_lr=0.005 * LOWER, epochs=6, extra=1
    )
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    count = 0

    def advance():
        nonlocal count
        lr.LRSchedule.set_lr(optimizer, float(schedule(count / STEPS_PER_EPOCH)))
        count += 1

    record("basenet", model, trainer(model, optimizer, update=advance), model, 8, 32)


def kervresnet34(sources: Path) -> None:
    """models/kresnet.py of KervNets with the layer of kervolution, SGD of its cifar-10.py."""
    on_cpu = {"torch.cuda.": "torch.", "self.weights": "weights"}  # else `weight` is there twice
    layer = load(sources, "wang-chen/kervolution", "kervolution.py", on_cpu)
    small = {"nn.Kerv2d": "Kerv2d", "512": "24", "256": "12", "128": "6", "64": "3"}
    name, file = "elepherai/KervNets", "models/kresnet.py"
    model = load(sources, name, file, small, Kerv2d=layer.Kerv2d).KResNet18().double()
    rate = 0.1 * LOWER**2
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
    record("kervresnet34", model, trainer(model, optimizer), model, 8, 32)


RECORDERS = (
    baidunet9,
    baidunet8,
    resnet9_mazare,
    resnet9_kakao,
    resnet9_apple,
    resnet9_mish,
    basenet,
    baidunet9p,
    wrn_22_6,
    kervresnet34,
)

if __name__ == "__main__":
    for recorder in RECORDERS:
        torch.manual_seed(0)
        recorder(Path(sys.argv[1]))
