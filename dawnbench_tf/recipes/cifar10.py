"""CIFAR-10 to 94 % top-1: DAWNBench's TensorFlow and PyTorch seeds, and the fast entries."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Images, Optimizer, Recipe, Schedule
from dawnbench_tf.recipe.evidence import Measured, Published

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
RESNET164_NB_TF = replace(
    RESNET20_TF,
    name="cifar10/resnet164_nb_tf",
    model="resnet164_nb_tf",
    evidence=(
        Published(
            entry="CIFAR10/train/dawn_resnet164_nb_1k80-gc_tensorflow.json",
            hours=10.0457,
            best=94.31,
            hardware="1 K80 / 30 GB / 8 CPU (Google Cloud)",
        ),
    ),
)
RESNET164_B_TF = replace(
    RESNET20_TF,
    name="cifar10/resnet164_b_tf",
    model="resnet164_b_tf",
    evidence=(
        Published(
            entry="CIFAR10/train/dawn_resnet164_b_1k80-gc_tensorflow.json",
            hours=11.0061,
            best=94.45,
            hardware="1 K80 / 30 GB / 8 CPU (Google Cloud)",
        ),
    ),
)

# Source: README of DAWNBench's PyTorch seeds. Learning rate 0.01 for 5 epochs, 0.1 for 90, 0.01 for
# 45, 0.001 for 45; weight decay of every parameter.
# Difference: the last batch of an epoch has 80 images there. Here it is filled up to 128 from the
# start of the epoch, so that shapes are static and replicas have equal shares.
RESNET56_PROJ = replace(
    RESNET20_TF,
    name="cifar10/resnet56_proj",
    model="resnet56_v1_proj",
    epochs=185,
    optimizer=replace(RESNET20_TF.optimizer, decays="all"),
    schedule=replace(RESNET20_TF.schedule, epochs=(5, 95, 140)),
    data=replace(
        RESNET20_TF.data,
        pad=4,
        standardize="channel",
        channel_mean=(0.4914, 0.4822, 0.4465),
        # as in the seeds; the deviation over all pixels is 0.247, 0.243, 0.262
        channel_deviation=(0.2023, 0.1994, 0.2010),
    ),
)
RESNET110_PROJ = replace(RESNET56_PROJ, name="cifar10/resnet110_proj", model="resnet110_v1_proj")
RESNET110_STOCHASTIC = replace(
    RESNET56_PROJ, name="cifar10/resnet110_stochastic", model="resnet110_stochastic"
)

# The entries have 181 rows and reach 94 % from row 137 on. So their learning rate fell at epochs 91
# and 136, as in the TensorFlow seeds, and not at the README's 95 and 140.
PREACT164 = replace(
    RESNET56_PROJ,
    name="cifar10/preact164",
    model="preact164",
    epochs=181,
    schedule=replace(RESNET56_PROJ.schedule, epochs=(1, 91, 136)),
    evidence=(
        Published(
            entry="CIFAR10/train/dawn_resnet164_b_1k80-gc_pytorch.json",
            hours=9.058,
            best=94.91,
            hardware="1 K80 / 30 GB / 8 CPU (Google Cloud)",
        ),
    ),
)
PREACT164_BASIC = replace(
    PREACT164,
    name="cifar10/preact164_basic",
    model="preact164_basic",
    evidence=(
        Published(
            entry="CIFAR10/train/dawn_resnet164_nb_1k80-gc_pytorch.json",
            hours=9.631,
            best=94.37,
            hardware="1 K80 / 30 GB / 8 CPU (Google Cloud)",
        ),
    ),
)

# Source: dawn.py of cifar10-fast, at the commit that the entry names. Its loss is the sum over the
# batch, its rate is divided and its decay multiplied by 512: equal to ours, whose loss is the mean.
# Difference: half precision there.
RESNET9_24EP = Recipe(
    name="cifar10/resnet9_24ep",
    task="cifar10",
    model="resnet9",
    epochs=24,
    batch_size=512,
    drop_remainder=True,
    optimizer=Optimizer(learning_rate=0.4, nesterov=True, weight_decay=5e-4, decays="all"),
    schedule=Schedule(form="linear", epochs=(0, 5, 24), factors=(0, 1, 0)),
    data=Images(
        pad=4,
        pad_mode="reflection",
        flip=True,
        cutout=8,
        standardize="channel",
        channel_mean=(0.4914, 0.4822, 0.4465),
        channel_deviation=(0.2471, 0.2435, 0.2616),
    ),
    evidence=(
        Published(
            entry="CIFAR10/train/davidcpage_resnet9_1v100-ec2_pytorch.json",
            hours=0.0206,
            best=94.08,
            hardware="V100 (AWS p3.2xlarge)",
        ),
    ),
)

# Source: new_dawn.py of cifar10-fast. BN's shifts, its only biases, have 64 times the learning rate
# and a 64th of the decay; BN's scales are frozen. Its optimizer counts a step before it reads the
# schedule: step n (from 0; 97 per epoch) has the rate of n + 1. So each corner is a step earlier.
# Differences: its averages are updated after steps 1, 6, ..., 96 of each epoch, 200 times in all;
# here after every fifth step of the run, 194 times. Its evaluation uses, from the second epoch on,
# the moving statistics of the first ghost group; here it uses the mean of all groups.
_PAGE_STEPS = 50_000 // 512
RESNET9_10EP = replace(
    RESNET9_24EP,
    name="cifar10/resnet9_10ep",
    model="resnet9_whitened",
    epochs=10,
    label_smoothing=0.2,
    optimizer=replace(
        RESNET9_24EP.optimizer, learning_rate=1.0, rate_in_velocity=True, shift_rate=64
    ),
    schedule=replace(
        RESNET9_24EP.schedule,
        epochs=(0, 2 - 1 / _PAGE_STEPS, 8 - 1 / _PAGE_STEPS),
        factors=(1 / (2 * _PAGE_STEPS), 1, 0.1),
    ),
    average=replace(RESNET9_24EP.average, decay=0.99, every=5),
    data=replace(RESNET9_24EP.data, cutout=0, test_views="mirror"),
    evidence=(),
)

# Source: legacy/airbench94.py and legacy/airbench96.py of cifar10-airbench. Their rates, 11.5 and 9
# per 1,024 examples, are the total weight of one gradient over all steps: with Nesterov momentum,
# learning rate x (1 + 1 / (1 - momentum)). Their decays, 0.0153 and 0.012, are rate x weight decay.
# Both are for the sum of the losses; ours are for the mean.
# Difference: their lookahead also averages the frozen whitening kernel with its random initial
# values, which changes it by about 1e-6 of them. Here the kernel does not change.
_GRADIENT_WEIGHT = 1 + 1 / (1 - 0.85)
AIRBENCH94 = Recipe(
    name="cifar10/airbench94",
    task="cifar10",
    model="airbench94",
    epochs=9.9,
    batch_size=1024,
    drop_remainder=True,
    label_smoothing=0.2,
    precision="mixed_bfloat16",
    optimizer=Optimizer(
        learning_rate=11.5 / _GRADIENT_WEIGHT,
        momentum=0.85,
        nesterov=True,
        weight_decay=0.0153 / 11.5,
        decays="all",
        shift_rate=64,
        whitening_bias_epochs=3,
    ),
    schedule=Schedule(form="linear", epochs=(0, 0.23 * 9.9, 9.9), factors=(0.2, 1, 0.07)),
    average=Average(decay=0.95, every=5, lookahead=True),
    data=Images(
        pad=2,
        pad_mode="reflection",
        flip=True,
        alternating_flip=True,
        standardize="channel",
        channel_mean=(0.4914, 0.4822, 0.4465),
        channel_deviation=(0.2470, 0.2435, 0.2616),
        test_views="mirror_and_shifts",
    ),
)
# The author's 1,000 runs of 9.9 epochs end at 94.01 on average, so half of them miss 94 %. Two more
# epochs, with the schedule stretched, allow for the standard deviation of 0.15 between runs.
AIRBENCH94_12EP = replace(
    AIRBENCH94,
    name="cifar10/airbench94_12ep",
    epochs=12,
    schedule=replace(AIRBENCH94.schedule, epochs=(0, 0.23 * 12, 12)),
    evidence=(
        Measured(
            date="2026-11-22",
            machine="2 cores of an AMD EPYC with AVX512_BF16, busy besides, TensorFlow 2.20",
            runs=10,
            reached=10,
            mean=94.18,
            sd=0.13,
            seconds=947.5,
            command=(
                "dawnbench study trials --recipe=cifar10/airbench94_12ep --trials=10 --data_dir=DIR"
            ),
            epochs=(11, 12, 12, 11, 11, 12, 12, 12, 12, 11),
        ),
    ),
)
AIRBENCH96 = replace(
    AIRBENCH94,
    name="cifar10/airbench96",
    model="airbench96",
    epochs=37,
    optimizer=replace(
        AIRBENCH94.optimizer, learning_rate=9 / _GRADIENT_WEIGHT, weight_decay=0.012 / 9
    ),
    schedule=replace(AIRBENCH94.schedule, epochs=(0, 0.1 * 37, 37), factors=(0.2, 1, 0)),
    data=replace(AIRBENCH94.data, pad=4, cutout=12),
)

RECIPES = (
    RESNET20_TF,
    RESNET56_TF,
    RESNET164_NB_TF,
    RESNET164_B_TF,
    RESNET56_PROJ,
    RESNET110_PROJ,
    RESNET110_STOCHASTIC,
    PREACT164,
    PREACT164_BASIC,
    RESNET9_24EP,
    RESNET9_10EP,
    AIRBENCH94,
    AIRBENCH94_12EP,
    AIRBENCH96,
)
