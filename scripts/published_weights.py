"""Evaluates published PyTorch weights in this package's networks, on the CIFAR-10 test set.

    .venv/bin/python scripts/published_weights.py --data_dir=CIFAR10 --weights_dir=DIR

DIR contains files of github.com/akamaster/pytorch_resnet_cifar10 under their original names; absent
files are skipped. Exit status: 1 if an accuracy differs from the published one by over 0.005 %.
"""

from dataclasses import dataclass
from pathlib import Path

from dawnbench_tf import flags, tensorflow_env, terminal
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.settings import setting

PUBLISHED = {  # model -> file, error on the test set in percent (from its README)
    "resnet20_v1_pad": ("resnet20-12fca82f.th", 8.27),
    "resnet32_v1_pad": ("resnet32-d509ac18.th", 7.37),
    "resnet44_v1_pad": ("resnet44-014dd654.th", 6.90),
    "resnet56_v1_pad": ("resnet56-4bfd9763.th", 6.61),
    "resnet110_v1_pad": ("resnet110-1d1ed7c2.th", 6.32),
    "resnet1202_v1_pad": ("resnet1202-f3b1deed.th", 6.18),
}
STANDARDIZED = {  # the networks were trained with ImageNet's statistics
    "standardize": "channel",
    "channel_mean": (0.485, 0.456, 0.406),
    "channel_deviation": (0.229, 0.224, 0.225),
}


@dataclass(frozen=True)
class Options:
    """Folders of the data set and the weights."""

    data_dir: str = setting("", "folder of CIFAR-10, or its archive")
    weights_dir: str = setting("", "folder of the published weights")


def accuracy(model_name: str, weights: Path, data_dir: str) -> float:
    """Returns the test accuracy in percent of a network with published weights."""
    from dawnbench_tf import models, recipes
    from dawnbench_tf.data import dataset
    from dawnbench_tf.training import evaluation

    recipe = recipes.get("cifar10/resnet20_tf", model=model_name, **STANDARDIZED)
    data = dataset.open(recipe, data_dir)
    model = data.network()
    models.load_published(model, weights)
    return evaluation.Evaluator(data, model)()["top1Accuracy"]


def main(_: list[str]) -> int:
    """Prints a line for each file."""
    try:
        return _print_table(flags.read(Options))
    except Refusal as refusal:
        terminal.exit_with(str(refusal))


def _print_table(options):
    files = {name: Path(options.weights_dir, row[0]) for name, row in PUBLISHED.items()}
    present = {name: file for name, file in files.items() if file.is_file()}
    if not present:
        names = ", ".join(row[0] for row in PUBLISHED.values())
        refuse("weights_dir", options.weights_dir, f"should hold one of {names}")
    wrong = 0
    print(f"{'network':20} {'file':24} published  here")
    with tensorflow_env.importing():
        import tensorflow  # noqa: F401
    for name, file in present.items():
        wanted = 100 - PUBLISHED[name][1]
        here = accuracy(name, file, options.data_dir)
        print(f"{name:20} {file.name:24} {wanted:9.2f}  {here:.2f}", flush=True)
        wrong += abs(here - wanted) > 0.005
    return int(wrong > 0)


if __name__ == "__main__":
    flags.run(main, Options)
