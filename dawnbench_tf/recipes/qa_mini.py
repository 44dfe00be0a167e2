"""qa_mini to F1 0.75: generated passages and questions, embedded, without a download."""

from dawnbench_tf.recipe import Average, Optimizer, Questions, Recipe

BIDAF = Recipe(
    name="qa_mini/bidaf",
    task="qa_mini",
    model="bidaf_50",
    epochs=40,
    batch_size=30,
    optimizer=Optimizer(name="adam", learning_rate=0.002),
    average=Average(decay=0.99),
    data=Questions(bucket_boundaries=(60, 80)),
)

DRQA = BIDAF.with_values(
    name="qa_mini/drqa",
    model="drqa",
    epochs=10,
    batch_size=32,
    optimizer="adamax",
    clip_norm=10,
    average=0.0,
)

FASTFUSIONNET = DRQA.with_values(name="qa_mini/fastfusionnet", model="fastfusionnet", clip_norm=20)
