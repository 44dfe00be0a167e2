"""Recorders of entries on one and several GPUs, which are simulated in turn; needs torch.

Each GPU has an equal part of the batch, one after another. Its BN has the statistics of that part,
and moving statistics that no other GPU changes. The weights are one set, which each GPU reads.
"""

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from source_code import LOWER, STEPS_PER_EPOCH, load, mirrored, record
from torch import nn

Gradients = Sequence[torch.Tensor]  # one for each trained weight


def replicate(model: nn.Module, count: int) -> list[nn.Module]:
    """Returns `count` networks, one for each GPU: `model`, and copies that share its weights."""
    replicas = [model, *(copy.deepcopy(model) for _ in range(count - 1))]
    for replica in replicas[1:]:
        for module, original in zip(replica.modules(), model.modules(), strict=True):
            module._parameters = original._parameters
    return replicas


def add(gradients: Sequence[Gradients]) -> list[torch.Tensor]:
    """Returns the gradient of the sum of the GPUs' losses, as DataParallel computes it."""
    return [torch.stack(parts).sum(0) for parts in zip(*gradients, strict=True)]


def average(gradients: Sequence[Gradients]) -> list[torch.Tensor]:
    """Returns the mean of the GPUs' gradients, as DistributedDataParallel computes it."""
    return [torch.stack(parts).mean(0) for parts in zip(*gradients, strict=True)]


def trainer(
    replicas: Sequence[nn.Module],
    loss: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor],
    combine: Callable[[Sequence[Gradients]], Gradients],
    update: Callable[[], None],
) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Returns a step: forward and backward on each GPU, then one update of the weights.

    Args:
      replicas: the GPUs' networks, of `replicate`.
      loss: function of a GPU's network, images and labels.
      combine: `add` or `average`, or the author's function: one gradient from those of the GPUs.
      update: function that updates the weights by their gradients.
    """
    weights = [weight for weight in replicas[0].parameters() if weight.requires_grad]
    count = len(replicas)

    def step(images, labels):
        parts = zip(replicas, images.chunk(count), labels.chunk(count), strict=True)
        gradients = [torch.autograd.grad(loss(*part), weights) for part in parts]
        for weight, gradient in zip(weights, combine(gradients), strict=True):
            weight.grad = gradient
        update()

    return step


def _cross_entropy(model, images, labels, reduction="mean"):
    return nn.functional.cross_entropy(model(images), labels, reduction=reduction)


def _kakao(sources: Path, recipe: str, script: str, head: dict, epochs: int, gpus: int, size: int):
    """bin/dawnbench/SCRIPT.py of torchskeleton, with its schedule and optimizer."""
    name = "wbaek/torchskeleton"
    parts = [
        load(sources, name, f"skeleton/{path}.py", {}, LOGGER=None)
        for path in ("nn/modules/modules", "optim/optimizers", "optim/scheduler")
    ]
    skeleton = SimpleNamespace(nn=parts[0])
    small = {"(3, 64,": "(3, 4,", "(64, 128": "(4, 8", "128, 128": "8, 8", "(128, 256": "(8, 8"}
    small |= {"256, 256": "8, 8", **head}
    definitions = load(sources, name, f"bin/dawnbench/{script}.py", small, skeleton=skeleton)
    model = definitions.build_network().double()
    schedule = parts[2].get_change_scale(
        parts[2].get_piecewise([0, 4, epochs], [0.025, 0.4, 0.001]),
        1.0 / size * gpus * (LOWER**2 if gpus > 1 else 1),
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

    def update():
        optimizer.update()
        optimizer.step()

    replicas = replicate(model, gpus)
    loss = partial(_cross_entropy, reduction="sum")
    step = trainer(replicas, loss, add, update)
    record(recipe, replicas, step, mirrored(model), size, 14)


def resnet9_kakao(sources: Path) -> None:
    """One GPU."""
    head = {"(256, 128": "(8, 8", "(128, num_class": "(8, num_class"}
    _kakao(sources, "resnet9_kakao", "cifar10", head, 25, 1, 16)


def resnet9_kakao_4gpu(sources: Path) -> None:
    """DataParallel on 4 GPUs, whose losses are summed.

    Its evaluation has the moving statistics of the first GPU; those of the others are lost there.
    """
    head = {"(256, num_class": "(8, num_class"}
    _kakao(sources, "resnet9_kakao_4gpu", "cifar10_multigpu", head, 35, 4, 32)


def _baidunet9p(sources: Path, recipe: str, gpus: int):
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

    def update():
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
        optimizer.step()
        count += 1

    # The decay precedes the gradient in fastai's loop, which is computed with the weights before.
    replicas = replicate(model, gpus)
    step = trainer(replicas, _cross_entropy, average, update)
    record(recipe, replicas, step, model, 16, 32)


def _wrn_22_6(sources: Path, recipe: str, cycle: tuple, rate: float, decay: float, gpus: int):
    """cifar10/models/wideresnet.py of imagenet-fast, with one cycle of fastai 0.7.

    Args:
      sources: folder of the checkouts.
      recipe: the recipe's name.
      cycle: epochs, and from --use-clr: divisor of the first rate, percentage of the last part.
      rate: --lr.
      decay: --wd.
      gpus: number of processes. distributed.py averages their gradients.
    """
    name = "fastai/imagenet-fast"
    network = load(sources, name, "cifar10/models/wideresnet.py", {}, math=math)
    model = network.WideResNet(depth=10, num_classes=10).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=decay)
    epochs, divisor, percentage = cycle
    total, count, peak = epochs * STEPS_PER_EPOCH, 0, rate * LOWER**2
    half = int(total * (1 - percentage / 100) / 2)

    def update():  # `calc_lr` and `calc_mom` of CircularLR_beta
        nonlocal count
        share = count / half if count <= half else 1 - (count - half) / half
        lr, momentum = peak * (1 + share * (divisor - 1)) / divisor, 0.95 + share * (0.85 - 0.95)
        if count > 2 * half:
            share = (count - 2 * half) / (total - 2 * half)
            lr, momentum = peak * (1 + share * (1 - 100) / 100) / divisor, 0.95
        optimizer.param_groups[0].update(lr=lr, momentum=momentum)
        optimizer.step()
        count += 1

    own = {"import torch.distributed as dist": ""}
    world = SimpleNamespace(get_world_size=lambda: gpus)
    distributed = load(sources, name, "cifar10/distributed.py", own, dist=world, Module=nn.Module)

    def all_reduce(gradients):
        first, *others = gradients

        def add(tensor):
            for other in others:
                tensor += torch.cat([gradient.flatten() for gradient in other])

        distributed.flat_dist_call(first, add)
        return first

    replicas = replicate(model, gpus)
    step = trainer(replicas, _cross_entropy, all_reduce, update)
    record(recipe, replicas, step, model, 16, 16)


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


def _apple(sources: Path, repository: str, recipe: str, epochs: int, splits: int, activation, gpus):
    """The settings of the script with a lower rate; DistributedDataParallel averages gradients."""
    size, scaler = 16, 1.5 * LOWER**2 / gpus  # of a GPU; shifts have 64 times this rate
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

    def loss(replica, images, labels):
        # Split s of ghost BN has the examples s, s + splits, ...; ours are one after another.
        order = torch.arange(size).reshape(splits, -1).t().reshape(-1)
        outputs = replica({"input": images[order], "target": labels[order]})
        return replica.loss(outputs)["loss"].sum()

    def forward(images):
        return model({"input": images})["logits"]

    replicas = replicate(model, gpus)
    step = trainer(replicas, loss, average, optimizer.step)
    record(recipe, replicas, step, mirrored(forward), gpus * size, 32)


def _resnet9_apple(sources: Path, recipe: str, gpus: int):
    """ml-cifar-10-faster, 16 examples in a group: here 8."""
    activation = partial(nn.CELU, 0.3)
    _apple(sources, "apple/ml-cifar-10-faster", recipe, 18, 2, activation, gpus)


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
    _apple(sources, name, "resnet9_mish", 14, 4, script.MishJit, 1)


RECORDERS = (
    resnet9_kakao,
    resnet9_kakao_4gpu,
    partial(_resnet9_apple, recipe="resnet9_apple", gpus=1),
    partial(_resnet9_apple, recipe="resnet9_apple", gpus=2),
    resnet9_mish,
    partial(_baidunet9p, recipe="baidunet9p", gpus=1),
    partial(_baidunet9p, recipe="baidunet9p", gpus=2),
    partial(_wrn_22_6, recipe="wrn_22_6", cycle=(30, 20, 20), rate=1.5, decay=1e-4, gpus=1),
    partial(_wrn_22_6, recipe="wrn_22_6_8gpu", cycle=(40, 50, 12.5), rate=2.0, decay=2e-4, gpus=2),
)
