"""ImageNet to 93 % top-5: published DAWNBench entries, and today's usual training of ResNets."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Jpegs, Network, Optimizer, Recipe, Schedule
from dawnbench_tf.recipe.evidence import Published, Reported

# Source: He et al. 2018 (arXiv 1812.01187), sections 2 to 5. Learning rate 0.1 per 256 examples,
# five epochs of warmup, cosine schedule, label smoothing, no weight decay of BN and biases, the
# last BN of each residual branch initialized to 0.
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
        channel_mean=(0.485, 0.456, 0.406),  # torchvision's and timm's weights expect these
        channel_deviation=(0.229, 0.224, 0.225),
    ),
    evidence=(
        Reported(
            score=93.28,
            source="arXiv 1812.01187, table 5: ResNet-50-B, 120 epochs, steps, no smoothing",
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

# Source: models/official/resnet of tensorflow/tpu: `train_batch_size` 32768, 3,558 steps; learning
# rate and warmup for this batch size are those of lars_util.py.
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

# Source: Google's entries of 2018-09. Their learning rate drops in one step; here over a hundredth
# of an epoch.
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
# Progressive resizing of fast.ai's entries of 2018, in Google's port: resnet_benchmark.py
# --use_fast_lr. Its batch size is constant; fast.ai's grew. Learning rates change at epochs 4, 21,
# 35, 43, image sizes at 18 and 41.
# Difference: it evaluates each phase at the phase's size; here all are evaluated at the last.
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

# Source: DAWNBench's TensorFlow seed, which states no settings. Its accuracy rises after epochs 30,
# 60 and 90, as with a step schedule. Network and momentum are those of tf_cnn_benchmarks, which it
# names. Batch size, learning rate, weight decay and augmentation are unknown; here they are He et
# al.'s (arXiv 1512.03385).
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

# Source: Google's entries of 2018-04, with the README's settings for one Cloud TPU. (The entries on
# pods had batch size 4,096, three epochs of warmup, 35 and 41 epochs.) The learning rate is
# multiplied by 0.88 after each epoch; here over a hundredth of an epoch.
# Differences: no 1,001st class; test images are cropped, not squeezed to squares.
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
