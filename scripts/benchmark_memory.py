"""Compares the predicted memory of a training step with what TensorFlow's CPU allocator counts.

.venv/bin/python scripts/benchmark_memory.py [RECIPE:BATCH_SIZE ...]

Prints a Markdown table, in MiB. What is measured is the peak during three steps, above what was
there before them.
"""

import gc
import sys

from dawnbench_tf import recipes, tensorflow_env

with tensorflow_env.importing():
    import tensorflow as tf

    from dawnbench_tf.data import dataset
    from dawnbench_tf.data.images import synthetic
    from dawnbench_tf.training import fitting, memory

CASES = (
    *("digits/resnet8:512", "cifar10/resnet20_tf:128", "cifar10/resnet56_proj:128"),
    *("cifar10/preact164:64", "cifar10/wrn_22_6:128", "cifar10/baidunet9:256"),
    *("cifar10/airbench94:1024", "cifar10/airbench96:512", "cifar10/hiverge94:1536"),
    *("imagenet/resnet50_v1_5:32", "imagenet/resnet152_dawn:16"),
)


def measure(case: str) -> tuple[memory.Need | None, int]:
    """Returns the predicted memory, and the measured bytes of a step, of "RECIPE:BATCH_SIZE"."""
    tf.keras.backend.clear_session()
    name, _, batch = case.partition(":")
    recipe = recipes.get(name)
    recipe = recipe.with_values(batch_size=int(batch), synthetic=recipe.task_row.synthetic)
    pool = 2 if recipe.task_row.jpegs else 0  # images in memory count as variables
    data = dataset.from_splits(recipe, synthetic.load(recipe, pool))
    model = fitting.build(data)
    need = memory.predict(model, data)
    gc.collect()  # what is freed during the steps would be missing from their peak
    tf.config.experimental.reset_memory_stats("CPU:0")
    before = _allocated()["current"]
    model.fit(data.training_batches(), steps_per_epoch=3, epochs=1, verbose=0)
    return need, _allocated()["peak"] - before


def _allocated() -> dict[str, int]:
    return dict(tf.config.experimental.get_memory_info("CPU:0"))


if __name__ == "__main__":
    print("| recipe, batch size | variables | step, predicted | measured | ratio |")
    print("|---|---|---|---|---|")
    for case in sys.argv[1:] or CASES:
        need, step = measure(case)
        if need:
            sizes = " | ".join(f"{size / 2**20:,.0f}" for size in (need.variables, need.step, step))
            print(f"| {case.replace(':', ', ')} | {sizes} | {need.step / step:.2f} |", flush=True)
