"""ImageNet to 93 % top-5: Intel's entries of 2018, on 64 and 128 machines without GPUs."""

from dataclasses import replace

from dawnbench_tf.recipe import Images, Network, Optimizer, Recipe, Schedule

# Source: branch DAWN_Bench of intel/caffe (abf2a5c, a2ebeab, 866eb3d), train_val.prototxt and
# solver.prototxt in models/intel_optimized_models/multinode. It trains in float32, 32 images on
# each machine; BNs are not synchronized. The learning rate rises from 0.1 over three epochs and
# drops in one step: 0.001 epochs are less than a step. `max_iter` is 90 epochs; the entries' rows
# end at the threshold. The Scale layers have decay_mult 0, but the guide's commands choose the
# MKL-DNN engine, which merges them into the BNs; there scales and shifts decay as all weights do.
# Differences: it resizes with bicubic interpolation; crops have aspect ratios of 9/16 to 16/9, and
# their area is drawn uniformly.
# The max pool is padded at the end only. The stem's convolution has a bias, which BN cancels. The
# last BN has an initial scale of 0 in each stage's last unit, in ResNet-56 in stage 3's last three
# units. Kernels but the first start with a variance by fan-in, dense weights with a deviation of
# 0.01. During warmup the velocity is scaled with the learning rate. An epoch's last batch goes on
# with images of the next epoch; here it is filled up, so that an epoch has up to a step more and
# the rate drops up to 80 steps later.
_RISE_AND_DROPS = (0, 3, 30, 30.001, 60, 60.001, 80, 80.001)

RESNET50_INTEL_2K = Recipe(
    name="imagenet/resnet50_intel_2k",
    task="imagenet",
    model="resnet50_v1_5",
    epochs=90,
    batch_size=2048,
    network=Network(synchronized_batch_norm=False),
    optimizer=Optimizer(
        learning_rate=0.8, momentum=0.9, rate_in_velocity=True, weight_decay=1e-4, decays="all"
    ),
    schedule=Schedule(
        form="linear", epochs=_RISE_AND_DROPS, factors=(0.125, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.001)
    ),
    data=Images(
        flip=True,
        standardize="channel",
        channel_mean=(123 / 255, 117 / 255, 104 / 255),
        channel_deviation=(128 / 255, 128 / 255, 128 / 255),
    ),
)
RESNET50_INTEL_4K = RESNET50_INTEL_2K.with_values(
    name="imagenet/resnet50_intel_4k",
    batch_size=4096,
    learning_rate=1.6,
    schedule_factors=(0.0625, *RESNET50_INTEL_2K.schedule.factors[1:]),
)
RESNET56_INTEL = replace(RESNET50_INTEL_4K, name="imagenet/resnet56_intel", model="resnet56_v1_5")
