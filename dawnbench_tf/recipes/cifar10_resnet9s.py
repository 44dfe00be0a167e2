"""CIFAR-10 to 94 % with ResNet-9s: Page's, and the published entries that followed him."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Network, Optimizer, Recipe, Schedule
from dawnbench_tf.recipes.cifar10 import images

# Source: dawn.py of cifar10-fast, at the commit that the entry names. Its loss is the sum over the
# batch, its rate is divided and its decay multiplied by 512: equal to ours, whose loss is the mean.
# The second entry's code counts a step before it reads the schedule: step n (from 0; 97 per epoch)
# has the rate of n + 1. So each corner is a step earlier; in Page's first version it is not.
# Difference: half precision there.
_PAGE_STEPS = 50_000 // 512
_STEP = 1 / _PAGE_STEPS
RESNET9_24EP = Recipe(
    name="cifar10/resnet9_24ep",
    task="cifar10",
    model="resnet9",
    epochs=24,
    batch_size=512,
    drop_remainder=True,
    optimizer=Optimizer(learning_rate=0.4, nesterov=True, weight_decay=5e-4, decays="all"),
    schedule=Schedule(form="linear", epochs=(0, 5 - _STEP, 24 - _STEP), factors=(_STEP / 5, 1, 0)),
    data=images(pad_mode="reflection", cutout=8, channel_deviation=(0.2471, 0.2435, 0.2616)),
)

# Source: new_dawn.py of cifar10-fast. BN's shifts, its only biases, have 64 times the learning rate
# and a 64th of the decay; BN's scales are frozen. Its optimizer counts a step first, too.
# Differences: its averages are updated after steps 1, 6, ..., 96 of each epoch, 200 times in all;
# here after every fifth step of the run, 194 times. Its evaluation uses, from the second epoch on,
# the moving statistics of the first ghost group; here it uses the mean of all groups.
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
        RESNET9_24EP.schedule, epochs=(0, 2 - _STEP, 8 - _STEP), factors=(_STEP / 2, 1, 0.1)
    ),
    average=Average(decay=0.99, every=5),
    data=replace(RESNET9_24EP.data, cutout=0, test_views="mirror"),
)

# Source: training.py of CIFAR10-Training-BaiduNet9, at the commit that the entry names: dawn.py
# with another network and another last learning rate. 14 of its author's 20 runs reached 94 %. Its
# 8x8 pool sees a map of 4x4, which PyTorch 1.0 pooled whole.
BAIDUNET9 = RESNET9_24EP.with_values(
    name="cifar10/baidunet9",
    model="baidunet9",
    precision="mixed_bfloat16",
    schedule_factors=(_STEP / 5, 1, 0.001 / 0.4),
)

# Source: train.py of CIFAR10-Inference-BaiduNet8, whose network an inference entry timed. Cutout is
# before the standardization there, so its squares are black.
# Differences: an epoch's last batch has 80 images there; here it is filled up. BN's scales start
# uniform in [0, 1) there, as PyTorch had it before 1.2, also in the next recipe and in BAIDUNET9P.
BAIDUNET8 = Recipe(
    name="cifar10/baidunet8",
    task="cifar10",
    model="baidunet8",
    epochs=300,
    batch_size=128,
    optimizer=Optimizer(learning_rate=0.1, weight_decay=5e-4, decays="all"),
    schedule=Schedule(form="steps", epochs=(140, 190), factors=(1, 0.1, 0.01)),
    data=images(
        cutout=8,
        cutout_clipped=True,
        cutout_color="black",
        channel_deviation=(0.2023, 0.1994, 0.2010),
    ),
)

# Source: cifar-10/train.py of LaurentMazare/deep-models, whose network an inference entry timed.
RESNET9_MAZARE = BAIDUNET8.with_values(
    name="cifar10/resnet9_mazare",
    model="resnet9_mazare",
    epochs=150,
    schedule_epochs=(50, 100),
    channel_mean=(0.5, 0.5, 0.5),
    channel_deviation=(0.25, 0.25, 0.25),
)

# Source: bin/dawnbench/cifar10.py of torchskeleton, release v0.2.1. 30 of its author's 50 runs
# reached 94 %. Images are padded by 2 and cropped to 30 pixels; test images at their center.
RESNET9_KAKAO = replace(
    RESNET9_24EP,
    name="cifar10/resnet9_kakao",
    model="resnet9_kakao",
    epochs=25,
    batch_size=500,
    precision="mixed_bfloat16",
    schedule=Schedule(form="linear", epochs=(0, 4, 25), factors=(0.025 / 0.4, 1, 0.001 / 0.4)),
    data=replace(RESNET9_24EP.data, pad=2, crop_size=30, cutout_clipped=True, test_views="mirror"),
)
# Source: bin/dawnbench/cifar10_multigpu.py: four GPUs with 500 images each. Its rate is divided by
# the batch of one GPU and its gradient summed over all, so the rate is four times as high. BN is
# over a GPU's images.
RESNET9_KAKAO_4GPU = RESNET9_KAKAO.with_values(
    name="cifar10/resnet9_kakao_4gpu",
    model="resnet9_kakao_256",
    epochs=35,
    batch_size=2000,
    synchronized_batch_norm=False,
    learning_rate=1.6,
    schedule_epochs=(0, 4, 35),
)

# Source: ml-cifar-10-faster: new_dawn.py on eight GPUs with 256 images each, without the average.
# 41 of its authors' 50 runs reached 94 %, their median is 94.19.
# Differences: each GPU draws its images from its own eighth of the training set there, and all
# whiten by the first one's. From the second epoch on its evaluation uses the moving statistics of
# the first ghost group of the first GPU; here it uses the mean of all groups of the GPU that tests
# the image.
_APPLE_STEP = 1 / (50_000 // 2048)
RESNET9_APPLE = RESNET9_10EP.with_values(
    name="cifar10/resnet9_apple",
    model="resnet9_apple",
    epochs=18,
    batch_size=2048,
    precision="mixed_bfloat16",
    learning_rate=1.5,
    weight_decay=7.5e-4,
    schedule_epochs=(0, 3.6 - _APPLE_STEP, 16 - _APPLE_STEP),
    schedule_factors=(_APPLE_STEP / 3.6, 1, 0.1),
    average=0.0,
)
# Source: iyaja/cifar-10-faster, at the commit that the entry names, with the flags in its `misc`:
# Apple's code with Mish, on four GPUs with 512 images each.
RESNET9_MISH = RESNET9_APPLE.with_values(
    name="cifar10/resnet9_mish",
    model="resnet9_mish",
    epochs=14,
    schedule_epochs=(0, 2.8 - _APPLE_STEP, 12 - _APPLE_STEP),
    schedule_factors=(_APPLE_STEP / 2.8, 1, 0.1),
)

# Source: train_cifar10_BaiduNet9P.py, with fastai 1.0's fit_one_cycle, mixup and AdamW: a cosine
# from 1/25 of the rate up and one down to 1/250,000, beta_1 from 0.95 to 0.85 and back. Its eight
# GPUs have 128 images each, over which BN is; lambda's four have 256.
# Differences: there an image is mixed with one of the same GPU, here with one of the global batch.
# Its evaluation uses the moving statistics of the first GPU, as DistributedDataParallel copies them
# to all; here each GPU tests its part of the images with the moving statistics of its own.
BAIDUNET9P = Recipe(
    name="cifar10/baidunet9p",
    task="cifar10",
    model="baidunet9p",
    epochs=24,
    batch_size=1024,
    drop_remainder=True,
    precision="mixed_bfloat16",
    network=Network(synchronized_batch_norm=False),
    optimizer=Optimizer(
        name="adamw",
        learning_rate=0.0052,
        beta_2=0.99,
        epsilon=1e-8,
        weight_decay=0.42,
        decays="all",
    ),
    schedule=Schedule(
        form="cosine_points",
        epochs=(0, 0.41 * 24, 24),
        factors=(1 / 25, 1, 1 / 250_000),
        momenta=(0.95, 0.85, 0.95),
    ),
    data=images(
        pad_mode="reflection",
        mixup=0.4,
        channel_mean=(0.491, 0.482, 0.447),
        channel_deviation=(0.247, 0.243, 0.261),
    ),
)
