"""Recipes that tasks of your own start from: not measured, made to work from 100 examples on."""

from dataclasses import replace

from dawnbench_tf.recipe import Images, Optimizer, Questions, Recipe, Schedule
from dawnbench_tf.recipes import imagenet
from dawnbench_tf.tasks import find_task

PHOTOS = Recipe(
    name="own/photos",
    task=find_task("folder"),
    model="resnet18_v1",
    epochs=30,
    batch_size=16,
    label_smoothing=0.1,
    optimizer=Optimizer(name="adam", learning_rate=0.001, weight_decay=5e-4),
    schedule=Schedule(form="cosine", epochs=(2,)),
    data=replace(imagenet.RESNET50_V1_5.data, image_sizes=(128,), smallest_crop=0.35),
)
IMAGES = Recipe(
    name="own/images",
    task=find_task("npz"),
    model="resnet8_v1_pad",
    epochs=30,
    batch_size=64,
    optimizer=Optimizer(learning_rate=0.05, nesterov=True, weight_decay=5e-4),
    schedule=Schedule(form="cosine", epochs=(2,)),
    data=Images(pad=2, standardize="image"),
)
QUESTIONS = Recipe(
    name="own/questions",
    task=find_task("squad_json"),
    model="fastfusionnet",
    epochs=20,
    batch_size=32,
    optimizer=Optimizer(name="adamax", learning_rate=0.002, clip_norm=20),
    data=Questions(bucket_boundaries=(100, 200, 300, 400)),
)
