"""qa_mini to F1 0.75: generated passages and questions, embedded, without a download."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Optimizer, Questions, Recipe
from dawnbench_tf.recipe.evidence import Measured

BIDAF = Recipe(
    name="qa_mini/bidaf",
    task="qa_mini",
    model="bidaf_50",
    epochs=40,
    batch_size=30,
    optimizer=Optimizer(name="adam", learning_rate=0.002),
    average=Average(decay=0.99),
    data=Questions(bucket_boundaries=(60, 80)),
    evidence=(
        Measured(
            date="2026-11-22",
            machine="2 cores of an AMD EPYC with AVX512, at times busy, TensorFlow 2.20",
            runs=3,
            reached=3,
            mean=0.851,
            sd=0.051,
            seconds=216.5,
            command="dawnbench train --recipe=qa_mini/bidaf --seed=N, N from 0 to 2",
        ),
        Measured(
            date="2026-11-23",
            machine="2 cores of an Intel Xeon with AVX512_BF16, shared with other work (load 10), "
            "TensorFlow 2.20",
            runs=2,
            reached=2,
            mean=0.81,
            sd=0.05,
            seconds=1047.9,
            command="dawnbench study trials --recipe=qa_mini/bidaf --trials=2",
            epochs=(6, 16),
        ),
    ),
)

DRQA = replace(
    BIDAF,
    name="qa_mini/drqa",
    model="drqa",
    epochs=10,
    batch_size=32,
    optimizer=replace(BIDAF.optimizer, name="adamax", clip_norm=10),
    average=replace(BIDAF.average, decay=0.0),
    evidence=(
        Measured(
            date="2026-11-23",
            machine="2 cores of an AMD EPYC with AVX512_BF16, shared with other work (load 5), "
            "TensorFlow 2.20",
            runs=1,
            reached=1,
            mean=0.92,
            sd=0.0,
            seconds=185.7,
            command="dawnbench study trials --recipe=qa_mini/drqa --trials=1",
            epochs=(2,),
        ),
    ),
)

FASTFUSIONNET = replace(
    DRQA,
    name="qa_mini/fastfusionnet",
    model="fastfusionnet",
    optimizer=replace(DRQA.optimizer, clip_norm=20),
    evidence=(
        Measured(
            date="2026-11-22",
            machine="2 cores of an AMD EPYC with AVX512_BF16, TensorFlow 2.20",
            runs=3,
            reached=3,
            mean=0.82,
            sd=0.02,
            seconds=39.4,
            command="dawnbench study trials --recipe=qa_mini/fastfusionnet --trials=3",
            epochs=(1, 1, 1),
        ),
    ),
)
