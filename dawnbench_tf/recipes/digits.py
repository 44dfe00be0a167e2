"""The embedded task: scikit-learn's real handwritten digits to 98 % top-1, no download."""

from dawnbench_tf.recipe import Recipe

RESNET8 = Recipe(
    name="digits/resnet8",
    task="digits",
    model="resnet8_v1_pad",
    epochs=30,
    batch_size=64,
    learning_rate=0.1,
    schedule="linear",
    schedule_epochs=(0, 2, 30),
    schedule_factors=(0.1, 1, 0),
    weight_decay=5e-4,
    pad=2,
    standardize="image",
)

RECIPES = (RESNET8,)
