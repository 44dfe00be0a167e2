"""The embedded reading task: generated passages and questions to F1 0.75, no download."""

from dawnbench_tf.recipe import Recipe

BIDAF = Recipe(
    name="qa_mini/bidaf",
    task="qa_mini",
    model="bidaf_50",
    epochs=40,
    batch_size=60,
    optimizer="adam",
    learning_rate=0.003,
    average=0.98,
    bucket_boundaries=(60, 80),
)

RECIPES = (BIDAF,)
