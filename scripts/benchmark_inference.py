"""Compares latencies at batch size 1: `infer --runtime=auto`, ONNX Runtime and PyTorch.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    .venv/bin/python scripts/benchmark_inference.py [THREADS ...]

Each network is trained on the digits for one epoch. PyTorch's network has the same layers and
weights, and its logits are compared. All sides time the same images, one at a time and in turn, in
one process. Prints a table; writes docs/inference.png.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch._dynamo  # before TensorFlow: PyTorch 2.14's crashes after it
from torch import nn
from torch.nn import functional

from dawnbench_tf import machine

NETWORKS = ("resnet56_tf", "resnet164_nb_tf", "resnet164_b_tf", "resnet9")
SIDES = (
    "ours, auto",
    "ours, float32",
    "ONNX Runtime",
    "torch traced",
    "torch compiled",
    "torch eager",
)
COMPILED = ("resnet56_tf", "resnet9")  # compiling a ResNet-164 takes more than four minutes
ROUNDS, IMAGES = 5, 100


class Call(nn.Module):
    """A PyTorch module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        """Calls the function."""
        return self.function(*inputs)


def _conv(layer):
    kernel, stride = layer.kernel_size[0], layer.strides[0]
    conv = nn.Conv2d(layer.input_shape[-1], layer.filters, kernel, stride, bias=layer.use_bias)
    weights = layer.get_weights()
    conv.weight.data = torch.tensor(weights[0].transpose(3, 2, 0, 1))
    if layer.use_bias:
        conv.bias.data = torch.tensor(weights[1])
    size = layer.input_shape[1]
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    if layer.padding == "valid" or not missing:
        return conv
    if missing % 2 == 0:
        conv.padding = (missing // 2, missing // 2)
        return conv
    return nn.Sequential(nn.ZeroPad2d((missing // 2, -(-missing // 2)) * 2), conv)


def _norm(layer):
    norm = nn.BatchNorm2d(layer.input_shape[-1], eps=layer.epsilon)
    values = (layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    names = ("weight", "bias", "running_mean", "running_var")
    for name, value in zip(names, values, strict=True):
        if value is not None:
            getattr(norm, name).data = torch.tensor(value.numpy())
    return norm


def _dense(layer):
    dense = nn.Linear(layer.input_shape[-1], layer.units, bias=layer.use_bias)
    for name, value in zip(("weight", "bias"), layer.get_weights(), strict=False):
        getattr(dense, name).data = torch.tensor(value.T)
    return dense


def _pad_channels(layer):
    missing = layer.channels - layer.input_shape[-1]
    sides = (0, 0, 0, 0, missing // 2, missing - missing // 2)
    return Call(lambda x: functional.pad(x, sides))


LAYERS = {  # class of the Keras layer -> function that builds PyTorch's
    "InputLayer": lambda layer: nn.Identity(),
    "Conv2D": _conv,
    "BatchNormalization": _norm,
    "Dense": _dense,
    "PadChannels": _pad_channels,
    "LeakyReLU": lambda layer: nn.LeakyReLU(layer.slope),
    "Activation": lambda layer: nn.ReLU(),
    "GELU": lambda layer: nn.GELU(),
    "Add": lambda layer: Call(lambda a, b: a + b),
    "AveragePooling2D": lambda layer: nn.AvgPool2d(layer.pool_size[0]),
    "MaxPooling2D": lambda layer: nn.MaxPool2d(layer.pool_size[0]),
    "GlobalAveragePooling2D": lambda layer: Call(lambda x: x.mean((2, 3))),
    "GlobalMaxPooling2D": lambda layer: Call(lambda x: x.amax((2, 3))),
    "Rescaling": lambda layer: Call(lambda x: x * layer.scale + layer.offset),
}


class Network(nn.Module):
    """The network of a Keras classifier in PyTorch, with its weights."""

    def __init__(self, model):
        super().__init__()
        self.modules_in_order = nn.ModuleList(
            LAYERS[type(layer).__name__](layer) for layer in model.layers
        )
        indices = {layer.name: index for index, layer in enumerate(model.layers)}
        self.sources = [
            [indices[tensor._keras_history.layer.name] for tensor in _inputs(layer)]
            for layer in model.layers
        ]

    def forward(self, x):
        """Returns the logits of images (NCHW)."""
        values = []
        for module, sources in zip(self.modules_in_order, self.sources, strict=True):
            values.append(module(*[values[index] for index in sources] if sources else [x]))
        return values[-1]


def _inputs(layer):
    if type(layer).__name__ == "InputLayer":
        return []
    return layer.input if isinstance(layer.input, list) else [layer.input]


def sides(loaded, threads):
    """Returns name -> call of the sides, the runtime that auto chose, the fastest in float32."""
    from dawnbench_tf.inference import runtime_choice, runtimes

    candidates = runtime_choice.compare(loaded, "", threads)
    best = runtime_choice.select_accurate(candidates, loaded.data.recipe.task_row)[0]
    float32 = [c for c in candidates if c.runtime and c.precision == "float32"]
    torch.set_num_threads(threads)
    network = Network(loaded.served.build("float32")).eval()
    (image,) = loaded.served.examples[0]
    example = torch.tensor(image.transpose(0, 3, 1, 2)).contiguous(
        memory_format=torch.channels_last
    )
    with torch.inference_mode():
        theirs = network(example).numpy()
        traced = torch.jit.optimize_for_inference(torch.jit.trace(network, example))
        compiled = None
        if loaded.data.recipe.model in COMPILED:
            compiled = torch.compile(network)  # needs a C++ compiler
            compiled(example)
    ours = runtimes.build("function", loaded.served, "float32", threads).call((image,))
    if np.abs(theirs - ours).max() > 1e-4 * np.abs(ours).max():
        raise SystemExit("the two networks are not the same")

    def torch_call(module):
        def call(example):
            with torch.inference_mode():
                return module(torch.from_numpy(example[0]).permute(0, 3, 1, 2))

        return call

    onnx = next(candidate for candidate in float32 if candidate.name == "onnx")
    fastest = min(float32, key=lambda candidate: candidate.p50)
    calls = (best.runtime.call, fastest.runtime.call, onnx.runtime.call)
    calls += tuple(m is not None and torch_call(m) for m in (traced, compiled, network))
    timed = {side: call for side, call in zip(SIDES, calls, strict=True) if call}
    return timed, best, fastest


def main(thread_counts=(1, 2)):
    """Trains the networks, times the sides, prints the table and draws the figure."""
    print(f"{'network':16} threads  " + "  ".join(f"{side:>14}" for side in SIDES) + "  ms, p50")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network in NETWORKS:
            run = Path(folder, network)
            command = [sys.executable, "-m", "dawnbench_tf.train", f"--model={network}"]
            flags = ("--recipe=digits/resnet8", "--epochs=1", f"--output_dir={run}")
            subprocess.run([*command, *flags], capture_output=True)
            for threads in thread_counts:
                command = [sys.executable, __file__, str(run), str(threads)]
                ended = subprocess.run(command, capture_output=True, text=True)
                if ended.returncode:
                    raise SystemExit(ended.stderr[-2000:])
                *medians, note = ended.stdout.splitlines()[-1].split("\t")
                rows.append((f"{network}\n{threads} threads", [float(cell) for cell in medians]))
                cells = "  ".join(f"{float(cell):14.3f}" for cell in medians)
                print(f"{network:16} {threads:7}  {cells}  {note}", flush=True)
    draw(rows)


def one(run, threads):
    """Times one network, in a process of its own that is bound to `threads` CPUs."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    with machine.importing():
        from dawnbench_tf.inference import latency, serving

    loaded = serving.load(Path(run))
    calls, best, fastest = sides(loaded, threads)
    times = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            timed = latency.measure(call, loaded.served.examples[:IMAGES], 1)
            times[name].append(timed.percentile(50) * 1e3)
    medians = "\t".join(f"{np.median(times.get(name, np.nan)):.6g}" for name in SIDES)
    note = f"auto: {best.name} {best.precision}; float32: {fastest.name}"
    print(f"{medians}\t{note}")


def draw(rows) -> None:
    """Draws the table as docs/inference.png."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(SIDES)
    for number, side in enumerate(SIDES):
        positions = np.arange(len(rows)) + width * (number - (len(SIDES) - 1) / 2)
        axes.bar(positions, [medians[number] for _, medians in rows], width, label=side)
    axes.set_xticks(range(len(rows)), [name for name, _ in rows], fontsize=7)
    axes.set(yscale="log", ylabel="ms for one image (median)")
    axes.legend(ncols=len(SIDES), fontsize=8, loc="upper center")
    axes.set_ylim(top=axes.get_ylim()[1] * 2)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(Path(__file__).parents[1] / "docs" / "inference.png")


if __name__ == "__main__":
    if len(sys.argv) == 3 and Path(sys.argv[1]).is_dir():
        one(sys.argv[1], int(sys.argv[2]))
    else:
        main(*([tuple(map(int, sys.argv[1:]))] if sys.argv[1:] else []))
