"""Imagenette to 80 % top-1: ImageNet's pipeline on ten of its classes, for small machines."""

from dataclasses import replace

from dawnbench_tf.recipe import Optimizer, Recipe, Schedule
from dawnbench_tf.recipes import imagenet

RESNET18 = Recipe(
    name="imagenette/resnet18",
    task="imagenette",
    model="resnet18_v1",
    epochs=16,
    batch_size=128,
    drop_remainder=True,
    label_smoothing=0.1,
    precision="mixed_bfloat16",
    optimizer=Optimizer(learning_rate=0.4, nesterov=True, weight_decay=5e-4),
    schedule=Schedule(form="linear", epochs=(0, 3, 16), factors=(0.1, 1, 0)),
    data=replace(
        imagenet.RESNET50_V1_5.data,
        image_sizes=(64, 96),
        image_size_epochs=(10,),
        test_image_size=128,
        smallest_crop=0.35,
    ),
)
