"""ImageNet to 93 % top-5: published entries, and what people train ResNets with today."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Jpegs, Network, Optimizer, Recipe, Schedule
from dawnbench_tf.recipe.evidence import Published, Reported

# He et al. 2018 (arXiv 1812.01187), sections 2 to 5: rate 0.1 for each 256 examples, five epochs'
# warmup, cosine, smoothed labels, no decay of BN and biases, last BN of each branch from 0.
RESNET50_V1_5 = Recipe(
    name="imagenet/resnet50_v1_5",
    task="imagenet",
    model="resnet50_v1_5",
    epochs=90,
    batch_size=256,
    label_smoothing=0.1,
    precision="mixed_bfloat16",
    network=Network(zero_last_norm=True),
    optimizer=Optimizer(
        learning_rate=0.1, scale_learning_rate_from=256, momentum=0.9, weight_decay=1e-4
    ),
    schedule=Schedule(form="cosine", epochs=(5,)),
    data=Jpegs(
        flip=True,
        standardize="channel",
        channel_mean=(0.485, 0.456, 0.406),  # as torchvision's and timm's weights have it
        channel_deviation=(0.229, 0.224, 0.225),
    ),
    evidence=(
        Reported(
            score=93.28,
            source="arXiv 1812.01187, table 5: ResNet-50-B in 120 epochs, not smoothed, in steps",
        ),
    ),
)
RESNET50D = replace(
    RESNET50_V1_5,
    name="imagenet/resnet50d",
    model="resnet50d",
    epochs=120,
    batch_size=1024,
    evidence=(Reported(score=94.09, source="arXiv 1812.01187, table 6: with label smoothing"),),
)
RESNET26D = replace(  # the network of the fastest inference entries
    RESNET50D,
    name="imagenet/resnet26d",
    model="resnet26d",
    evidence=(Reported(score=93.156, source="timm's resnet26d.bt_in1k, trained otherwise"),),
)

# tensorflow/tpu, models/official/resnet: `train_batch_size` 32768, 3,558 steps, and of lars_util.py
# the rate and the warmup for it.
RESNET50_LARS = replace(
    RESNET50_V1_5,
    name="imagenet/resnet50_lars",
    epochs=91,
    batch_size=32_768,
    optimizer=replace(
        RESNET50_V1_5.optimizer, name="lars", learning_rate=34, scale_learning_rate_from=0
    ),
    schedule=Schedule(form="quadratic", epochs=(12,)),
    evidence=(),
)

# Google's entries of 2018-09. The rate falls at once at an epoch: here within a hundredth of it.
RESNET50_TPU = replace(
    RESNET50_V1_5,
    name="imagenet/resnet50_tpu",
    batch_size=1024,
    label_smoothing=0,
    schedule=Schedule(
        form="linear",
        epochs=(0, 5, 30, 30.01, 60, 60.01, 80, 80.01),
        factors=(0, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.001),
    ),
    evidence=(
        Published(
            entry="ImageNet/train/google_resnet50_tpu_tensorflow111.json",
            hours=5.8751,
            best=93.36,
            hardware="GCP n1-standard-2, Cloud TPU",
        ),
    ),
)
# The schedule that fast.ai's entries of 2018 had, images that grow, as Google's port of it has it:
# its batch stays, theirs grew too. resnet_benchmark.py --use_fast_lr: rates at epochs 4, 21, 35,
# 43, sizes at 18 and 41; each phase is tested at its size there, here all at the last.
RESNET50_PROGRESSIVE = replace(
    RESNET50_TPU,
    name="imagenet/resnet50_progressive",
    epochs=50,
    schedule=replace(RESNET50_TPU.schedule, epochs=(0, 4, 21, 21.01, 35, 35.01, 43, 43.01)),
    data=replace(RESNET50_TPU.data, image_sizes=(128, 224, 288), image_size_epochs=(18, 41)),
    evidence=(
        Published(
            entry="ImageNet/train/google_resnet50_tpu_tensorflow111_fastai.json",
            hours=2.7418,
            best=93.34,
            hardware="GCP n1-standard-2, Cloud TPU",
        ),
    ),
)

# DAWNBench's TensorFlow seed says no settings. Its rows rise after epochs 30, 60 and 90, as a rate
# in steps makes them; network and momentum are tf_cnn_benchmarks's, which it names. Not known:
# batch, rate, decay, augmentation; they are He et al.'s (arXiv 1512.03385) here.
RESNET152_DAWN = replace(
    RESNET50_V1_5,
    name="imagenet/resnet152_dawn",
    model="resnet152_v1",
    epochs=113,
    label_smoothing=0,
    precision="float32",
    network=replace(RESNET50_V1_5.network, zero_last_norm=False),
    schedule=Schedule(form="steps", epochs=(30, 60, 90), factors=(1, 0.1, 0.01, 0.001)),
    evidence=(
        Published(
            entry="ImageNet/train/dawn_resnet152_b_4M60_ec2_tensorflow.json",
            hours=322.6934,
            best=93.38,
            hardware="4 M60 / 488 GB / 64 CPU (Amazon EC2 [g3.16xlarge])",
        ),
    ),
)

# Google's entries of 2018-04, at the README's settings for one Cloud TPU; those of the pods trained
# 4,096 images at once, 35 and 41 epochs, after three epochs' warmup. The rate falls by 0.88 after
# each epoch, here within a hundredth of it. Not here: the 1,001st class, test images squeezed to
# squares.
_EPOCHS = 35
AMOEBANET_D = Recipe(
    name="imagenet/amoebanet_d",
    task="imagenet",
    model="amoebanet_d",
    epochs=_EPOCHS,
    batch_size=1024,
    label_smoothing=0.1,
    precision="mixed_bfloat16",
    network=Network(auxiliary_weight=0.4, synchronized_batch_norm=False),
    optimizer=Optimizer(
        name="rmsprop",
        learning_rate=0.64,
        scale_learning_rate_from=256,
        momentum=0.9,
        epsilon=1.0,
        weight_decay=4e-5,
    ),
    schedule=Schedule(
        form="linear",
        epochs=(0, 0.35, *(end + late for end in range(1, _EPOCHS) for late in (0, 0.01))),
        factors=(0, 1, *(0.88**fall for end in range(1, _EPOCHS) for fall in (end - 1, end))),
    ),
    average=Average(decay=0.9999, ramp=True),
    data=Jpegs(
        smallest_crop=0.1,
        color_shift=(32 / 255, 0.1),
        flip=True,
        standardize="channel",
        channel_mean=(0.5, 0.5, 0.5),
        channel_deviation=(0.5, 0.5, 0.5),
    ),
    evidence=(
        Published(
            entry="ImageNet/train/google_amoeba_net_d_tpu_tensorflow18.json",
            hours=7.4748,
            best=93.11,
            hardware="GCP n1-standard-2, Cloud TPU",
        ),
    ),
)

RECIPES = (
    RESNET50_V1_5,
    RESNET50D,
    RESNET26D,
    RESNET50_LARS,
    RESNET50_TPU,
    RESNET50_PROGRESSIVE,
    RESNET152_DAWN,
    AMOEBANET_D,
)
