"""ImageNet to 93 % top-5: published DAWNBench entries, and today's usual training of ResNets."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Images, Network, Optimizer, Recipe, Schedule

# Source: He et al. 2018 (arXiv 1812.01187), sections 2 to 5. Learning rate 0.1 per 256 examples,
# five epochs of warmup, cosine schedule, Nesterov momentum, label smoothing, no weight decay of BN
# and biases, the last BN of each residual branch initialized to 0.
# Differences: it changes brightness, contrast, saturation and lighting of images; its weights start
# from Xavier's uniform distribution, biases at 0. BN is over the images of a device, as in all
# sources of this file.
RESNET50_V1_5 = Recipe(
    name="imagenet/resnet50_v1_5",
    task="imagenet",
    model="resnet50_v1_5",
    epochs=90,
    batch_size=256,
    label_smoothing=0.1,
    precision="mixed_bfloat16",
    network=Network(zero_last_norm=True, synchronized_batch_norm=False),
    optimizer=Optimizer(
        learning_rate=0.1,
        scale_learning_rate_from=256,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-4,
    ),
    schedule=Schedule(form="cosine", epochs=(5,)),
    data=Images(
        flip=True,
        standardize="channel",
        channel_mean=(0.485, 0.456, 0.406),  # torchvision's and timm's weights expect these
        channel_deviation=(0.229, 0.224, 0.225),
    ),
)
RESNET50D = replace(
    RESNET50_V1_5, name="imagenet/resnet50d", model="resnet50d", epochs=120, batch_size=1024
)
RESNET26D = replace(  # the network of the fastest inference entries
    RESNET50D, name="imagenet/resnet26d", model="resnet26d"
)

# Source: models/official/resnet of tensorflow/tpu: `train_batch_size` 32768, 3,558 steps; learning
# rate and warmup for this batch size are those of lars_util.py.
# Differences: 39 whole batches an epoch, 3,549 steps. There the loss has the decay a second time;
# kernels start with a variance by fan-in, dense weights with a deviation of 0.01.
RESNET50_LARS = RESNET50_V1_5.with_values(
    name="imagenet/resnet50_lars",
    epochs=91,
    batch_size=32_768,
    drop_remainder=True,
    optimizer="lars",
    learning_rate=34,
    scale_learning_rate_from=0,
    nesterov=False,
    schedule="quadratic",
    schedule_epochs=(12,),
)

# Source: Google's entries of 2018-09. Their learning rate drops in one step; here over a hundredth
# of an epoch.
# Differences: they resize images with bicubic interpolation; weights start as RESNET50_LARS' do.
RESNET50_TPU = replace(
    RESNET50_V1_5,
    name="imagenet/resnet50_tpu",
    batch_size=1024,
    label_smoothing=0,
    optimizer=replace(RESNET50_V1_5.optimizer, decays="all_but_norms"),
    schedule=Schedule(
        form="linear",
        epochs=(0, 5, 30, 30.01, 60, 60.01, 80, 80.01),
        factors=(0, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.001),
    ),
    data=replace(RESNET50_V1_5.data, smallest_crop=0.1),  # min_object_covered of the sampler
)
# The same on half of a pod: batch size 8,192, 100 epochs.
RESNET50_TPU_POD = replace(
    RESNET50_TPU, name="imagenet/resnet50_tpu_pod", epochs=100, batch_size=8192
)
# Progressive resizing of fast.ai's entries of 2018, in Google's port: resnet_benchmark.py
# --use_fast_lr. Its batch size is constant; fast.ai's grew. Learning rates change at epochs 4, 21,
# 35, 43, image sizes at 18 and 41.
# Differences: it evaluates each phase at the phase's size, on nine tenths of an image's short side;
# here all are evaluated at the last size, on seven eighths. Images of the first 18 epochs were
# resized to 160x160 before.
RESNET50_PROGRESSIVE = RESNET50_TPU.with_values(
    name="imagenet/resnet50_progressive",
    epochs=50,
    schedule_epochs=(0, 4, 21, 21.01, 35, 35.01, 43, 43.01),
    image_sizes=(128, 224, 288),
    image_size_epochs=(18, 41),
)

# Source: scripts/train-resnet152-imagenet-gpus=4, resnet_model.py and tf_cnn_benchmarks.py of
# DAWNBench's TensorFlow seed: 32 images on each of four GPUs, learning rate 0.1, divided by 10
# every 30 epochs, Nesterov momentum, decay of every weight.
# Differences: it distorts colors; crops are at least 0.05 of an image, test crops 0.87 of its side;
# pixels are from -1 to 1; BN averages over more steps; the max pool pads nothing; kernels start by
# Glorot's uniform distribution, dense weights with a variance by fan-in; it has a 1,001st class.
RESNET152_DAWN = replace(
    RESNET50_V1_5,
    name="imagenet/resnet152_dawn",
    model="resnet152_v1",
    epochs=113,
    batch_size=128,
    label_smoothing=0,
    precision="float32",
    network=replace(RESNET50_V1_5.network, zero_last_norm=False),
    optimizer=replace(RESNET50_V1_5.optimizer, scale_learning_rate_from=0, decays="all"),
    schedule=Schedule(form="steps", epochs=(30, 60, 90), factors=(1, 0.1, 0.01, 0.001)),
)

# Source: train.sh and train_resnet.py of deepakn94/mxnet-resnet: pre-activation, Nesterov momentum.
# Differences: BN's scales decay there, its epsilon is 2e-5, and a BN takes the place of the pixels'
# mean; weights start with a variance by fan-in; hue, saturation and lightness of images are shifted
# by at most 36, 50 and 50, aspect ratios by a quarter; crops of 224 pixels are from images with a
# shorter side of 256 to 480 pixels.
RESNET152_MXNET = RESNET152_DAWN.with_values(
    name="imagenet/resnet152_mxnet",
    model="resnet152_v2",
    epochs=110,
    batch_size=256,
    decays="kernels",
)

# Source: examples/ResNet/imagenet-resnet.py of tensorpack at 4e933ef99, 5,000 steps an epoch.
# Differences: it changes brightness, contrast, saturation and lighting of images, resizes them with
# bicubic interpolation, draws a crop's area uniformly, and pads as TensorFlow does; dense weights
# start with a variance of 2 by fan-in.
RESNET152_TENSORPACK = replace(
    RESNET50_V1_5,
    name="imagenet/resnet152_tensorpack",
    model="resnet152_v1_5",
    epochs=110,
    drop_remainder=True,
    label_smoothing=0,
    precision="float32",
    optimizer=replace(RESNET50_V1_5.optimizer, scale_learning_rate_from=0),
    schedule=Schedule(
        form="steps", epochs=(30, 60, 85, 95, 105), factors=(1, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
    ),
)
# Source: dawn/resnet.b512.baseline.py of diux-dev/cluster; learning rates as the entry states them.
RESNET50_TENSORPACK = RESNET152_TENSORPACK.with_values(
    name="imagenet/resnet50_tensorpack",
    model="resnet50_v1_5",
    epochs=100,
    batch_size=512,
    learning_rate=0.2,
    schedule_epochs=(1, 2, 30, 60, 80),
    schedule_factors=(0.5, 0.75, 1, 0.1, 0.01, 0.001),
)


# Source: Google's entries of 2018-04, with the README's settings for one Cloud TPU. The learning
# rate is multiplied by 0.88 after each epoch; here over a hundredth of an epoch.
# Differences: no 1,001st class; test images are cropped, not squeezed to squares; the normal of
# initial kernels is not truncated, that of dense ones is a uniform of equal variance.
def _amoebanet_schedule(epochs: int, start: tuple[tuple[float, float], ...]) -> Schedule:
    """Returns 0.88 of the rate after each epoch that follows the corners `start`."""
    ends = range(int(start[-1][0]) + 1, epochs)
    falls = [(end + late, 0.88 ** (end - (late == 0))) for end in ends for late in (0, 0.01)]
    times, factors = zip(*start, *falls, strict=True)
    return Schedule(form="linear", epochs=times, factors=factors)


AMOEBANET_D = Recipe(
    name="imagenet/amoebanet_d",
    task="imagenet",
    model="amoebanet_d",
    epochs=35,
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
    schedule=_amoebanet_schedule(35, ((0, 0), (0.35, 1))),
    average=Average(decay=0.9999, ramp=True),
    data=Images(
        smallest_crop=0.1,
        color_shift=(32 / 255, 0.1),
        flip=True,
        standardize="channel",
        channel_mean=(0.5, 0.5, 0.5),
        channel_deviation=(0.5, 0.5, 0.5),
    ),
)

# On a sixteenth and a quarter of a pod: batch size 4,096. The warmup of three epochs ends at the
# full learning rate; then the rate is that of an exponential fall from the first epoch on.
_POD_START = ((0, 0), (2.99, 2.99 / 3), (3, 0.88**3))
AMOEBANET_D_POD = replace(
    AMOEBANET_D,
    name="imagenet/amoebanet_d_pod",
    batch_size=4096,
    schedule=_amoebanet_schedule(35, _POD_START),
)
AMOEBANET_D_POD_41 = replace(
    AMOEBANET_D_POD,
    name="imagenet/amoebanet_d_pod_41",
    epochs=41,
    schedule=_amoebanet_schedule(41, _POD_START),
)

# Intel's entries, on 64 and 128 machines without GPUs.
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
    data=replace(
        RESNET50_V1_5.data,
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
