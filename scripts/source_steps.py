"""Records training steps of the code of published entries' authors, for tests to compare ours with.

    .venv/bin/python scripts/source_steps.py SOURCES    # needs torch, and in SOURCES git checkouts
                                                        # named as the keys of `source_code.COMMITS`

The authors' own functions build the network, the optimizer and the schedule. Only fastai's cycles
are rewritten, without the step by which the momentum of fastai 0.7 leads. All is in float64, with
fewer channels, which are replaced in the text or are arguments. tests/fixtures/source_steps has,
for each recipe, the weights before and after 60 steps and the logits of an evaluation.
`source_gpus` has the entries that were trained on several GPUs.
"""

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import source_gpus
import torch
from source_code import LOWER, STEPS, STEPS_PER_EPOCH, batches, load, mirrored, record
from torch import nn


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

    record("baidunet9", [model], trainer(model, optimizer, forward, "sum"), forward, size, 16)


def baidunet8(sources: Path) -> None:
    """BaiduNet8.py of CIFAR10-Inference-BaiduNet8, with the optimizer of its train.py."""
    name = "BAIDU-USA-GAIT-LEOPARD/CIFAR10-Inference-BaiduNet8"
    small = {"256": "8", "128": "8", "64": "4"}
    model = load(sources, name, "BaiduNet8.py", small).BaiduNet8().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * LOWER, momentum=0.9, weight_decay=5e-4)
    record("baidunet8", [model], trainer(model, optimizer), model, 8, 32)


def resnet9_mazare(sources: Path) -> None:
    """cifar-10/train.py of deep-models."""
    train = load(sources, "LaurentMazare/deep-models", "cifar-10/train.py", {})
    model = train.ResNet9(4, 8, 8, 8).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    record("resnet9_mazare", [model], trainer(model, optimizer), model, 8, 32)


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

    record("basenet", [model], trainer(model, optimizer, update=advance), model, 8, 32)


def kervresnet34(sources: Path) -> None:
    """models/kresnet.py of KervNets with the layer of kervolution, SGD of its cifar-10.py."""
    on_cpu = {"torch.cuda.": "torch.", "self.weights": "weights"}  # else `weight` is there twice
    layer = load(sources, "wang-chen/kervolution", "kervolution.py", on_cpu)
    small = {"nn.Kerv2d": "Kerv2d", "512": "24", "256": "12", "128": "6", "64": "3"}
    name, file = "elepherai/KervNets", "models/kresnet.py"
    model = load(sources, name, file, small, Kerv2d=layer.Kerv2d).KResNet18().double()
    rate = 0.1 * LOWER**2
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
    record("kervresnet34", [model], trainer(model, optimizer), model, 8, 32)


def resnet50_fastai(sources: Path) -> None:
    """imagenet18: resnet.py, bnwd_optim_params, the Scheduler; batch sizes and rates in phases.

    An epoch has 80 examples. A step takes the first examples of its recorded batch, in float32: our
    network casts images so, and rounding lets a max pool choose another pixel.
    """
    name, small = "diux-dev/imagenet18", {"512": "16", "256": "8", "128": "4", "64": "2"}
    network = load(sources, name, "training/resnet.py", small)
    groups = load(sources, name, "training/experimental_utils.py", {})
    silent = SimpleNamespace(log=lambda *_: None, event=lambda *_: None)
    script = load(
        sources,
        name,
        "training/train_imagenet_nv.py",
        {"collections.Iterable": "collections.abc.Iterable"},
        tb=silent,
        log=silent,
        args=SimpleNamespace(momentum=0.9),
    )
    model = network.ResNet(network.Bottleneck, [2, 2, 2, 2], num_classes=10).double()
    weights = list(model.parameters())
    groups = groups.bnwd_optim_params(model, weights, weights)
    optimizer = torch.optim.SGD(groups, 0, momentum=0.9, weight_decay=1e-4)
    lr = 0.02 * LOWER**2
    phases = [{"ep": (0, 2), "lr": (lr, lr * 2)}, {"ep": 2, "lr": lr * 2}]
    phases += [{"ep": (3, 4), "lr": (lr * 2, lr)}, {"ep": 4, "lr": lr}]
    phases += [{"ep": (5, 6), "lr": (lr, lr / 10)}, {"ep": (6, 7), "lr": (lr / 100, lr / 1000)}]
    scheduler = script.Scheduler(optimizer, phases)
    sizes = {0: 16, 1: 16, 2: 16, 3: 16, 4: 8, 5: 4, 6: 8}
    steps = [(epoch, i, 80 // size) for epoch, size in sizes.items() for i in range(80 // size)]
    remaining = iter(steps)

    def step(images, labels):
        epoch, index, count = next(remaining)
        scheduler.update_lr(epoch, index + 1, count)
        images, labels = images[: sizes[epoch]].float().double(), labels[: sizes[epoch]]
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        model.zero_grad()

    record("resnet50_fastai_8m", [model], step, model, 16, 64)


def airbench94_muon(sources: Path) -> None:
    """airbench94_muon.py: network, Muon; the groups of SGD and the rates of its `main`."""
    exact = {
        "mod.float()": "mod.double()",
        "mod.half()": "mod.double()",
        "G.bfloat16()": "G.clone()",
    }
    small = {"@torch.compile": "", "256": "16", "64": "8", **exact}
    script = load(sources, "KellerJordan/cifar10-airbench", "airbench94_muon.py", small)
    model = script.CifarNet()
    muon = script.Muon(_filters(model), lr=0.24 * LOWER, momentum=0.6, nesterov=True)
    _record_muon("airbench94_muon", model, muon, (0.053, 0.67, 2e-6, 0.85), 15, 0.2, 1 / 4)


def hiverge94(sources: Path) -> None:
    """cifar10_speedrun.py: network, Muon; the groups of SGD and the rates of its `main`.

    Without its small terms of the norms' denominators.
    """
    compiled = ("@torch.compile(fullgraph=True)", "@torch.compile()")
    exact = {"torch.half": "torch.double", "mod.half()": "mod.double()", "1e-05": "1e-12"}
    small = {**dict.fromkeys(compiled, ""), "=256": "=16", "=64": "=8", **exact}
    script = load(sources, "hiverge/cifar10-speedrun", "cifar10_speedrun.py", small)
    model = script.CifarNet()
    muon = script.Muon(
        _filters(model),
        lr=0.205 * LOWER,
        momentum=0.655,
        total_train_steps=STEPS,
        weight_decay=1.0418e-6 * 1536,
    )
    muon.param_groups[0]["momentum_buffer_dtype"] = torch.double
    _record_muon("hiverge94", model, muon, (0.0573, 0.5415, 1.0418e-6, 0.825), 7, 0.09, 1 / 3)


def airbench96_faster(sources: Path) -> None:
    """airbench96_faster.py: its `main`, with the steps of its `train_proxy`, on recorded batches.

    The networks are initialized, and whitened, before. The rate is higher, as batches are smaller.
    """
    small = {
        "torch.cuda.Event(enable_timing=True)": "Mock()",
        "torch.cuda.synchronize()": "None",
        "net.half().cuda()": "net.double()",
        ".cuda()": "",
        "mod.float()": "mod.double()",
        "mask.float()": "mask.double()",
        "(torch.half, torch.float)": "(torch.double,)",
        "1e-3 * starter.elapsed_time(ender)": "0",
        "_orig_mod[0]": "get_submodule('0')",
    }
    path = "airbench96_faster.py"
    script = load(sources, "KellerJordan/cifar10-airbench", path, small, Mock=Mock)
    model, unused = (script.make_net(_hyper_net((8, 16, 16), 3)) for _ in range(2))
    proxy = script.make_net(_hyper_net((4, 8, 8), 2))
    proxy[0].bias.requires_grad = False
    images = next(batches(1, 16 * STEPS_PER_EPOCH, 32))[0]
    for network in (model, proxy):
        script.init_whitening_conv(network[0], images)
    steps = _Loader(images)
    loop = script.main.__globals__
    nothing = dict.fromkeys(("reinit_net", "init_whitening_conv", "print"), lambda *_: None)
    loop.update(InfiniteCifarLoader=lambda *_, **__: steps, **nothing)
    opt = {"lr": 9 * 64 * LOWER, "batch_size": 16, "batch_size_masked": 8, "momentum": 0.85}
    opt |= {"weight_decay": 0.012, "bias_scaler": 64, "label_smoothing": 0.2}
    opt |= {"train_epochs": STEPS // STEPS_PER_EPOCH, "whiten_bias_epochs": 3}

    def step(images, labels):
        steps.append((None, images, labels))
        if len(steps) == STEPS:
            hyp = {"opt": opt, "aug": {}, "net": {"tta_level": 2}}
            script.main(0, hyp, proxy, model, unused)

    def logits(images):
        return script.infer(model, _Loader(images), tta_level=2)

    record("airbench96_faster", [nn.ModuleList([model, proxy])], step, logits, 16, 32)


def _hyper_net(widths, depth) -> dict:
    names = ("block1", "block2", "block3")
    net = {"widths": dict(zip(names, widths, strict=True)), "depth": depth}
    return net | {"scaling_factor": 1 / 9}


class _Loader(list):
    """Batches, in place of Jordan's loader, with images that are standardized."""

    def __init__(self, images):
        super().__init__()
        self.images, self.labels = images, torch.zeros(len(images))

    def normalize(self, images):
        """Returns the images."""
        return images


def _filters(model) -> list:
    return [p for p in model.parameters() if p.ndim == 4 and p.requires_grad]


def _record_muon(name, model, muon, rates, whitening_steps, smoothing, shift_weight) -> None:
    """Records steps of both optimizers, with the rates of the scripts' `main`.

    Args:
      name: of the recipe.
      model: the network; muon: optimizer of its filters.
      rates: rate of biases, rate of the head, weight decay of an example, momentum of SGD.
      whitening_steps: steps in which whitening's bias is trained.
      smoothing: of the labels.
      shift_weight: weight of a shifted image in an evaluation.
    """
    size = 16
    bias, head, decay, momentum = rates
    decay *= size
    model.init_whiten(next(batches(1, 64, 32))[0])
    norms = [p for n, p in model.named_parameters() if "norm" in n and p.requires_grad]
    groups = [([model.whiten.bias], bias), (norms, bias), ([model.head.weight], head)]
    sgd = torch.optim.SGD(
        [{"params": p, "lr": rate * LOWER, "weight_decay": decay / rate} for p, rate in groups],
        momentum=momentum,
        nesterov=True,
    )
    for group in sgd.param_groups + muon.param_groups:
        group["initial_lr"] = group["lr"]
    count = 0

    def step(images, labels):
        nonlocal count
        logits = model(images, whiten_bias_grad=count < whitening_steps)
        loss = nn.functional.cross_entropy(
            logits, labels, label_smoothing=smoothing, reduction="sum"
        )
        loss.backward()
        for group in sgd.param_groups[:1]:
            group["lr"] = group["initial_lr"] * (1 - count / whitening_steps)
        for group in sgd.param_groups[1:] + muon.param_groups:
            group["lr"] = group["initial_lr"] * (1 - count / STEPS)
        for optimizer in (sgd, muon):
            optimizer.step()
        model.zero_grad(set_to_none=True)
        count += 1

    record(name, [model], step, partial(_six_views, model, shift_weight), size, 32)


def _six_views(model, shift_weight, images):
    """Returns the mean of the outputs of images, of shifted images, and of their mirrors."""
    padded = nn.functional.pad(images, (1,) * 4, "reflect")
    views = images, padded[:, :, :32, :32], padded[:, :, 2:, 2:]
    weights = 1 - 2 * shift_weight, shift_weight, shift_weight
    return sum(w * mirrored(model)(view) for w, view in zip(weights, views, strict=True))


RECORDERS = (
    airbench94_muon,
    hiverge94,
    airbench96_faster,
    baidunet9,
    baidunet8,
    resnet9_mazare,
    basenet,
    kervresnet34,
    resnet50_fastai,
    *source_gpus.RECORDERS,
)

if __name__ == "__main__":
    for recorder in RECORDERS:
        torch.manual_seed(0)
        recorder(Path(sys.argv[1]))
