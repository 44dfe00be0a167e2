"""digits to 98 % top-1: scikit-learn's handwritten digits, embedded, without a download."""

from dawnbench_tf.recipe import Images, Optimizer, Recipe, Schedule

RESNET8 = Recipe(
    name="digits/resnet8",
    task="digits",
    model="resnet8_v1_pad",
    epochs=30,
    batch_size=64,
    optimizer=Optimizer(learning_rate=0.1, rate_in_velocity=True, weight_decay=5e-4),
    schedule=Schedule(form="linear", epochs=(0, 2, 30), factors=(0.1, 1, 0)),
    data=Images(pad=2, standardize="image"),
)
