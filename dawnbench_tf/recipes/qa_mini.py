"""The embedded reading task: generated passages and questions to F1 0.75, no download."""

from dawnbench_tf.recipe import Recipe

BIDAF = Recipe(
    name="qa_mini/bidaf",
    task="qa_mini",
    model="bidaf_50",
    epochs=40,
    batch_size=30,
    optimizer="adam",
    learning_rate=0.002,
    average=0.99,
    bucket_boundaries=(60, 80),
)

RECIPES = (BIDAF,)
