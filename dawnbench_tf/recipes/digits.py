"""digits to 98 % top-1: scikit-learn's handwritten digits, embedded, without a download."""

from dawnbench_tf.recipe import Images, Optimizer, Recipe, Schedule
from dawnbench_tf.recipe.evidence import Measured

RESNET8 = Recipe(
    name="digits/resnet8",
    task="digits",
    model="resnet8_v1_pad",
    epochs=30,
    batch_size=64,
    optimizer=Optimizer(learning_rate=0.1, rate_in_velocity=True, weight_decay=5e-4),
    schedule=Schedule(form="linear", epochs=(0, 2, 30), factors=(0.1, 1, 0)),
    data=Images(pad=2, standardize="image"),
    evidence=(
        Measured(
            date="2026-11-21",
            machine="2 cores of an AMD EPYC with AVX512, TensorFlow 2.20",
            runs=10,
            reached=10,
            mean=98.9,
            sd=0.54,
            seconds=6.8,
            command="dawnbench train --seed=N, for N from 0 to 9",
        ),
        Measured(
            date="2026-11-23",
            machine="2 cores of an Intel Xeon with AVX512_BF16, shared with other work (load 3), "
            "TensorFlow 2.20",
            runs=10,
            reached=10,
            mean=98.9,
            sd=0.54,
            seconds=17.7,
            command="dawnbench study trials --recipe=digits/resnet8 --trials=10",
            epochs=(11, 12, 12, 11, 9, 10, 11, 8, 10, 10),
        ),
    ),
)
