"""Catalogue rows of image classifiers. This module does not import TensorFlow."""

from typing import Any

from .variant import rows

_TF_SEEDS = "DAWNBench's TensorFlow seeds (2017)"
_TORCH_SEEDS = "DAWNBench's PyTorch seeds (2017)"
_HE15 = "He et al. 2015, arXiv 1512.03385"
_HE16 = "He et al. 2016, arXiv 1603.05027"
_STOCHASTIC = "Huang et al. 2016, arXiv 1603.09382"
_WIDE = "Zagoruyko & Komodakis 2016, arXiv 1605.07146"
_XIE = "Xie et al. 2016, arXiv 1611.05431"
_DENSE = "Huang et al. 2017, arXiv 1608.06993"
_PAGE = "Page 2018-2019, How to train your ResNet"
_JORDAN = "Jordan 2024, arXiv 2404.00498"
_GROSS = "Gross & Wilber 2016, fb.resnet.torch"
_BAG = "He et al. 2018, arXiv 1812.01187"
_REAL = "Real et al. 2018, arXiv 1802.01548"


_IMAGENET = {"num_classes": 1000, "image_size": 224}


_SEED: dict[str, Any] = {
    "preactivation": "first",
    "leaky_slope": 0.1,
    "norm_scale": False,
    "norm_epsilon": 1e-3,
    "padding": "same",
}
_BOTTLENECK: dict[str, Any] = {"block": "bottleneck"}
_N6F256 = {"cells": 6, "filters": 256}
_AIRBENCH96 = {"widths": (128, 384, 512), "convolutions": 3, "norm_momentum": 0.9}

ROWS = (
    *rows(
        "cifar_resnets",
        _TF_SEEDS,
        (
            ("resnet20_tf", {"depth": 20}, 269_034, 40_551_040),
            ("resnet56_tf", {"depth": 56}, 850_986, 125_485_696),
            ("resnet164_nb_tf", {"depth": 164}, 2_596_842, 380_289_664),
        ),
        shortcut="pool_pad",
        **_SEED,
    ),
    *rows(
        "cifar_resnets",
        _TF_SEEDS,
        (("resnet164_b_tf", {"depth": 164}, 1_691_146, 244_500_992),),
        shortcut="projection",
        strided="1x1",
        **_BOTTLENECK,
        **_SEED,
    ),
    *rows(
        "cifar_resnets",
        _HE15,
        (
            ("resnet8_v1_pad", {"depth": 8}, 75_290, 12_239_488),
            ("resnet20_v1_pad", {"depth": 20}, 269_722, 40_551_040),
            ("resnet32_v1_pad", {"depth": 32}, 464_154, 68_862_592),
            ("resnet44_v1_pad", {"depth": 44}, 658_586, 97_174_144),
            ("resnet56_v1_pad", {"depth": 56}, 853_018, 125_485_696),
            ("resnet110_v1_pad", {"depth": 110}, 1_727_962, 252_887_680),
            ("resnet1202_v1_pad", {"depth": 1202}, 19_421_274, 2_829_238_912),
        ),
        shortcut="stride_pad",
    ),
    *rows("cifar_resnets", _HE15, (("resnet8_v1_proj", {"depth": 8}, 78_042, 12_501_632),)),
    *rows(
        "cifar_resnets",
        _TORCH_SEEDS,
        (
            ("resnet20_v1_proj", {"depth": 20}, 272_474, 40_813_184),
            ("resnet32_v1_proj", {"depth": 32}, 466_906, 69_124_736),
            ("resnet44_v1_proj", {"depth": 44}, 661_338, 97_436_288),
            ("resnet56_v1_proj", {"depth": 56}, 855_770, 125_747_840),
            ("resnet110_v1_proj", {"depth": 110}, 1_730_714, 253_149_824),
            ("resnet1202_v1_proj", {"depth": 1202}, 19_424_026, 2_829_501_056),
        ),
    ),
    *rows(
        "cifar_resnets",
        _STOCHASTIC,
        (
            ("resnet56_stochastic", {"depth": 56}, 853_018, 125_485_696),
            ("resnet56_stochastic_08", {"depth": 56, "final_survival": 0.8}, 853_018, 125_485_696),
            ("resnet110_stochastic", {"depth": 110}, 1_727_962, 252_887_680),
            ("resnet1202_stochastic", {"depth": 1202}, 19_421_274, 2_829_238_912),
        ),
        shortcut="pool_pad",
        final_survival=0.5,
    ),
    *rows(
        "cifar_resnets",
        _HE16,
        (
            ("preact8", {"depth": 8}, 77_850, 12_501_632),
            ("preact14", {"depth": 14}, 175_066, 26_657_408),
            ("preact20", {"depth": 20}, 272_282, 40_813_184),
            ("preact56", {"depth": 56}, 855_578, 125_747_840),
            ("preact110", {"depth": 110}, 1_730_522, 253_149_824),
            ("preact164_basic", {"depth": 164}, 2_605_466, 380_551_808),
            ("preact164", {"depth": 164, **_BOTTLENECK}, 1_703_258, 247_646_720),
            ("preact1001", {"depth": 1001, **_BOTTLENECK}, 10_327_706, 1_490_995_712),
        ),
        preactivation="widening",
        shortcut="projection",
    ),
    *rows(
        "wide_resnets",
        _WIDE,
        (
            ("wrn_16_8", {"depth": 16, "widen": 8}, 10_961_370, 1_548_145_664),
            ("wrn_28_10", {"depth": 28, "widen": 10}, 36_479_194, 5_243_328_768),
            ("wrn_40_4", {"depth": 40, "widen": 4}, 8_949_210, 1_298_582_016),
        ),
    ),
    *rows(
        "resnexts",
        _XIE,
        (
            ("resnext29_8x64d", {"cardinality": 8}, 34_426_698, 5_387_266_048),
            ("resnext29_16x64d", {"cardinality": 16}, 68_155_210, 10_688_866_304),
        ),
        depth=29,
        base_width=64,
    ),
    *rows(
        "densenets",
        _DENSE,
        (
            ("densenet_bc_100_12", {"depth": 100, "growth": 12}, 769_162, 287_929_692),
            ("densenet_bc_250_24", {"depth": 250, "growth": 24}, 15_324_406, 5_418_785_724),
            ("densenet_bc_190_40", {"depth": 190, "growth": 40}, 25_624_430, 9_301_945_740),
        ),
    ),
    *rows(
        "resnet9s",
        _PAGE,
        (
            ("resnet9", {}, 6_573_120, 379_261_952),
            ("resnet9_whitened", {"whitened": True}, 6_570_880, 380_008_448),
        ),
    ),
    *rows(
        "airbench",
        _JORDAN,
        (
            ("airbench94", {}, 1_971_352, 118_147_360),
            ("airbench96", _AIRBENCH96, 9_915_416, 451_967_264),
        ),
    ),
    *rows(
        "imagenet_resnets",
        _TORCH_SEEDS,
        (
            ("resnet18_cifar", {"depth": 18}, 11_173_962, 555_422_720),
            ("resnet50_cifar", {"depth": 50}, 23_520_842, 1_297_829_888),
            ("resnet101_cifar", {"depth": 101}, 42_512_970, 2_509_983_744),
            ("resnet152_cifar", {"depth": 152}, 58_156_618, 3_722_137_600),
        ),
        stem="cifar",
    ),
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
