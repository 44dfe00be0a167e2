"""CIFAR-10 to 94 % top-1: DAWNBench's TensorFlow and PyTorch seeds, and the fast entries."""

from dataclasses import replace
from functools import partial

from dawnbench_tf.recipe import Images, Optimizer, Recipe, Schedule

# The usual images: a mean for each channel, padded crops and flips; each source has its deviation.
images = partial(
    Images, pad=4, flip=True, standardize="channel", channel_mean=(0.4914, 0.4822, 0.4465)
)

# Source: resnet_main.py of DAWNBench's TensorFlow seeds. Learning rate 0.01 for the first epoch,
# 0.1 until epoch 91, 0.01 until 136, 0.001 until 181. The entries of 2017 trained 181 epochs of 391
# steps. The L2 penalty is on convolutions and the dense kernel.
RESNET20_TF = Recipe(
    name="cifar10/resnet20_tf",
    task="cifar10",
    model="resnet20_tf",
    epochs=181,
    batch_size=128,
    optimizer=Optimizer(learning_rate=0.1, weight_decay=5e-4),
    schedule=Schedule(form="steps", epochs=(1, 91, 136), factors=(0.1, 1, 0.1, 0.01)),
    data=Images(pad=2, flip=True, standardize="image"),
)
RESNET56_TF = replace(RESNET20_TF, name="cifar10/resnet56_tf", model="resnet56_tf")
RESNET164_NB_TF = replace(RESNET20_TF, name="cifar10/resnet164_nb_tf", model="resnet164_nb_tf")
RESNET164_B_TF = replace(RESNET20_TF, name="cifar10/resnet164_b_tf", model="resnet164_b_tf")

# Source: reedwm/dawn-bench-models, branch tensorflow_perf: the seed with ReLU, for speed.
RESNET164_NB_RELU = replace(
    RESNET20_TF, name="cifar10/resnet164_nb_relu", model="resnet164_nb_relu"
)

# Source: examples/ResNet/cifar10-resnet.py of tensorpack, as it was when the entries were made;
# presumably with --num_units=8, for 50 layers. A learning rate holds from the end of the epoch that
# the schedule names; before, it is 0.01. The entries' `misc` says 0.1 from the start.
# Differences: from each pixel its own mean is subtracted there, here its channel's; the dense layer
# starts from other random weights.
RESNET50_TENSORPACK = Recipe(
    name="cifar10/resnet50_tensorpack",
    task="cifar10",
    model="resnet50_tensorpack",
    epochs=400,
    batch_size=128,
    drop_remainder=True,
    optimizer=Optimizer(learning_rate=0.1, weight_decay=2e-4),
    schedule=Schedule(form="steps", epochs=(1, 82, 123, 300), factors=(0.1, 1, 0.1, 0.01, 0.002)),
    data=images(channel_deviation=(128 / 255, 128 / 255, 128 / 255)),
)

# Source: examples/cifar10.py and basenet/lr.py of basenet, at the commit that the entry names. The
# learning rate rises to 0.1 before epoch 15, continues from 0.105 and falls to 0.005, then to 0; in
# the last five epochs it is 0.0005.
# Differences: half precision there, in BN too, whose scales start uniform in [0, 1). The last batch
# has 80 images there, here it is filled up.
BASENET = Recipe(
    name="cifar10/basenet",
    task="cifar10",
    model="basenet",
    epochs=40,
    batch_size=128,
    precision="mixed_bfloat16",
    optimizer=Optimizer(learning_rate=0.1, nesterov=True, weight_decay=5e-4, decays="all"),
    schedule=Schedule(
        form="linear",
        epochs=(0, 15 - 1 / 391, 15, 30, 35, 35 + 1 / 391),
        factors=(0, 1 - 1 / (15 * 391), 1.05, 0.05, 0, 0.005),
    ),
    data=images(pad_mode="reflection", channel_deviation=(63 / 255, 62.1 / 255, 66.7 / 255)),
)

# Source: cifar10/dawn_mod.py of fastai/imagenet-fast with the flags in dawn_submission/README.md,
# and CircularLR_beta of fastai 0.7: the learning rate rises linearly from 1/20 and falls as far
# back, the momentum the other way round; in the last fifth of the steps the rate falls to 1/2000.
# Differences: half precision there; the last batch of an epoch is filled up here; color jitter's
# operations have one order here; the momentum is one step ahead of the rate there.
WRN_22_6 = Recipe(
    name="cifar10/wrn_22_6",
    task="cifar10",
    model="wrn_22_6",
    epochs=30,
    batch_size=512,
    precision="mixed_bfloat16",
    optimizer=Optimizer(learning_rate=1.5, weight_decay=1e-4, decays="all"),
    schedule=Schedule(
        form="linear",
        epochs=(0, 12, 24, 30),
        factors=(1 / 20, 1, 1 / 20, 1 / 2000),
        momenta=(0.95, 0.85, 0.95, 0.95),
    ),
    data=images(
        pad_mode="reflection",
        color_jitter=(0.25, 0.25, 0.25),
        rotation=2,
        channel_mean=(0.4914, 0.48216, 0.44653),
        channel_deviation=(0.24703, 0.24349, 0.26159),
    ),
)
# Source: the same at 1bc5aee, the entry's: eight GPUs with 128 images each, over which BN is. Its
# distributed.py averages the GPUs' gradients.
# Differences: distributed.py also divides the initial weights by the number of GPUs when it sends
# them to all; here they are whole. The rate rises for 857 steps there, for 857.5 here. The
# evaluation uses the moving statistics of the first GPU there; here each GPU tests its part of the
# images with the moving statistics of its own, and checkpoints have their mean.
WRN_22_6_8GPU = WRN_22_6.with_values(
    name="cifar10/wrn_22_6_8gpu",
    epochs=40,
    batch_size=1024,
    synchronized_batch_norm=False,
    learning_rate=2.0,
    weight_decay=2e-4,
    schedule_epochs=(0, 17.5, 35, 40),
    schedule_factors=(1 / 50, 1, 1 / 50, 1 / 5000),
)

# Source: README of DAWNBench's PyTorch seeds. Learning rate 0.01 for 5 epochs, 0.1 for 90, 0.01 for
# 45, 0.001 for 45; weight decay of every parameter.
# Difference: the last batch of an epoch has 80 images there. Here it is filled up to 128 from the
# start of the epoch, so that shapes are static and replicas have equal shares.
RESNET56_PROJ = RESNET20_TF.with_values(
    name="cifar10/resnet56_proj",
    model="resnet56_v1_proj",
    epochs=185,
    decays="all",
    schedule_epochs=(5, 95, 140),
    pad=4,
    standardize="channel",
    channel_mean=(0.4914, 0.4822, 0.4465),
    # as in the seeds; the deviation over all pixels is 0.247, 0.243, 0.262
    channel_deviation=(0.2023, 0.1994, 0.2010),
)
RESNET110_PROJ = replace(RESNET56_PROJ, name="cifar10/resnet110_proj", model="resnet110_v1_proj")
RESNET110_STOCHASTIC = replace(
    RESNET56_PROJ, name="cifar10/resnet110_stochastic", model="resnet110_stochastic"
)

# The entries have 181 rows and reach 94 % from row 137 on. So their learning rate fell at epochs 91
# and 136, as in the TensorFlow seeds, and not at the README's 95 and 140.
PREACT164 = RESNET56_PROJ.with_values(
    name="cifar10/preact164", model="preact164", epochs=181, schedule_epochs=(1, 91, 136)
)
PREACT164_BASIC = replace(PREACT164, name="cifar10/preact164_basic", model="preact164_basic")

# Source: cifar-10.py and models/kresnet.py of wang-chen/KervNets, at the commit that the entry
# names; the repository is gone, its fork elepherai/KervNets has the commit. The learning rate falls
# at epochs 50, 100 and 150: in PyTorch 0.3.1 `scheduler.step()` before epoch n, from 0, sets the
# rate of epoch n, and the entry's accuracy jumps in rows 51 and 101. All parameters decay, also the
# balance of the kervolution.
# Assumptions: the layer is wang-chen/kervolution's at e66eaac, where the balance starts at 2. That
# commit was KervNets' submodule until minutes before the entry's commit, whose own, 6dab147, is
# gone; in the next one left, two days younger, the balance starts at 1. The weight decay is the
# script's 5e-4; the entry's `misc` says 1e-4. BN's scales start uniform in [0, 1), as in
# PyTorch 0.3.
# Difference: the last batch of an epoch has 80 images there; here it is filled up.
KERVRESNET34 = RESNET56_PROJ.with_values(
    name="cifar10/kervresnet34",
    model="kervresnet34",
    epochs=200,
    schedule_epochs=(50, 100, 150),
    schedule_factors=(1, 0.1, 0.01, 0.001),
)
