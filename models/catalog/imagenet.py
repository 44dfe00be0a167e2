"""Catalogue rows of image classifiers for ImageNet. This module does not import TensorFlow."""

from .variant import rows

_HE15 = "He et al. 2015, arXiv 1512.03385"
_HE16 = "He et al. 2016, arXiv 1603.05027"
_GROSS = "Gross & Wilber 2016, fb.resnet.torch"
_INTEL = "Intel 2018, branch DAWN_Bench of intel/caffe"
_BAG = "He et al. 2018, arXiv 1812.01187"
_SLIM = "TF-slim, nets/resnet_v1.py"
_REAL = "Real et al. 2018, arXiv 1802.01548"

_IMAGENET = {"num_classes": 1000, "image_size": 224}
_N6F256 = {"cells": 6, "filters": 256}

ROWS = (
    *rows(
        "imagenet_resnets",
        _HE15,
        (
            ("resnet18_v1", {"depth": 18}, 11_689_512, 1_814_073_344),
            ("resnet34_v1", {"depth": 34}, 21_797_672, 3_663_761_408),
            ("resnet50_v1", {"depth": 50}, 25_557_032, 3_857_973_248),
            ("resnet101_v1", {"depth": 101}, 44_549_160, 7_570_194_432),
            ("resnet152_v1", {"depth": 152}, 60_192_808, 11_282_415_616),
        ),
        _IMAGENET,
        version="v1",
    ),
    *rows(
        "imagenet_resnets",
        _GROSS,
        (
            ("resnet26_v1_5", {"depth": 26}, 15_995_176, 2_342_256_640),
            ("resnet50_v1_5", {"depth": 50}, 25_557_032, 4_089_184_256),
            ("resnet101_v1_5", {"depth": 101}, 44_549_160, 7_801_405_440),
            ("resnet152_v1_5", {"depth": 152}, 60_192_808, 11_513_626_624),
        ),
        _IMAGENET,
        version="v1.5",
    ),
    *rows(
        "imagenet_resnets",
        _INTEL,
        # Its train_val.prototxt has 64 parameters more: biases of the stem's convolution.
        (("resnet56_v1_5", {"depth": 56}, 27_791_400, 4_525_916_160),),
        _IMAGENET,
        version="v1.5",
    ),
    *rows(
        "imagenet_resnets",
        _SLIM,
        (("resnet50_v1_slim", {"depth": 50}, 25_557_032, 3_482_255_360),),
        _IMAGENET,
        version="v1_slim",
    ),
    *rows(
        "imagenet_resnets",
        _BAG,
        (
            ("resnet26d", {"depth": 26}, 16_014_408, 2_581_897_216),
            ("resnet50d", {"depth": 50}, 25_576_264, 4_328_824_832),
        ),
        _IMAGENET,
        version="v1.5d",
    ),
    *rows(
        "imagenet_resnets",
        _HE16,
        (
            ("resnet18_v2", {"depth": 18}, 11_687_720, 1_814_073_344),
            ("resnet34_v2", {"depth": 34}, 21_795_880, 3_663_761_408),
            ("resnet50_v2", {"depth": 50}, 25_549_352, 4_089_184_256),
            ("resnet101_v2", {"depth": 101}, 44_541_480, 7_801_405_440),
            ("resnet152_v2", {"depth": 152}, 60_185_128, 11_513_626_624),
        ),
        _IMAGENET,
        version="v2",
    ),
    *rows(
        "imagenet_resnets",
        "keras.applications' ResNetV2",
        (
            ("resnet50_v2_keras", {"depth": 50}, 25_568_360, 3_482_255_360),
            ("resnet101_v2_keras", {"depth": 101}, 44_577_896, 7_194_476_544),
            ("resnet152_v2_keras", {"depth": 152}, 60_236_904, 10_906_697_728),
        ),
        _IMAGENET,
        version="v2_keras",
        norm_epsilon=1.001e-5,
    ),
    *rows("amoebanets", _REAL, (("amoebanet_d", _N6F256, 46_095_080, 5_715_769_696),), _IMAGENET),
)
