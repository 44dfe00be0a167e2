"""Catalogue rows of image classifiers for CIFAR-10. This module does not import TensorFlow."""

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
_BAIDU = "Baidu USA GAIT LEOPARD, CIFAR10-*-BaiduNet*"
_JORDAN = "Jordan 2024, arXiv 2404.00498"


_SEED: dict[str, Any] = {
    "preactivation": "first",
    "leaky_slope": 0.1,
    "norm_scale": False,
    "norm_epsilon": 1e-3,
    "padding": "same",
}
_BOTTLENECK: dict[str, Any] = {"block": "bottleneck"}
_WHITENED: dict[str, Any] = {"whitened": True, "activation": "celu", "logit_scale": 1 / 16}
_BAIDUNET9 = {"widths": (64, 128, 256, 256), "residual": (1, 2), "logit_scale": 0.2}
_BAIDUNET8 = {
    "widths": (64, 128, 256),
    "halvings": ("pool", "pool"),
    "residual": (1, 2),
    "head": "average",
    "logit_scale": 1.0,
}
_BAIDUNET9P = {
    "widths": (64, 128, 256, 384),
    "halvings": ("pool", "none", "pool"),
    "head": "max_bias",
    "logit_scale": 1.0,
}
_KAKAO = {
    "halvings": ("stride", "pool", "valid"),
    "residual": (1, 2),
    "initializer": "kaiming",
    "logit_scale": 0.2,
}
_AIRBENCH96 = {"widths": (128, 384, 512), "convolutions": 3, "norm_momentum": 0.9}
_AIRBENCH96_PROXY = {"widths": (32, 64, 64), "norm_momentum": 0.9, "whitening_bias": False}
_UNWHITENED = {"muon": True, "whitening_examples": 0}
_HIVERGE94 = {
    "muon": True,
    "activation": "silu",
    "norm_momentum": 0.5566,
    "whitening_examples": 960,
}

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
        "reedwm/dawn-bench-models, branch tensorflow_perf",
        (("resnet164_nb_relu", {"depth": 164}, 2_596_842, 380_289_664),),
        shortcut="pool_pad",
        **{**_SEED, "leaky_slope": 0.0},
    ),
    *rows(
        "cifar_resnets",
        "tensorpack/tensorpack, examples/ResNet",
        (("resnet50_tensorpack", {"depth": 50}, 755_802, 111_329_920),),
        preactivation="first",
        shortcut="pool_pad",
        padding="same",
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
        ),
    ),
    *rows(
        "cifar_resnets",
        _STOCHASTIC,
        (
            ("resnet56_stochastic", {"depth": 56}, 853_018, 125_485_696),
            ("resnet110_stochastic", {"depth": 110}, 1_727_962, 252_887_680),
        ),
        shortcut="pool_pad",
        final_survival=0.5,
    ),
    *rows(
        "cifar_resnets",
        _HE16,
        (
            ("preact110", {"depth": 110}, 1_730_522, 253_149_824),
            ("preact164_basic", {"depth": 164}, 2_605_466, 380_551_808),
            ("preact164", {"depth": 164, **_BOTTLENECK}, 1_703_258, 247_646_720),
        ),
        preactivation="widening",
        shortcut="projection",
    ),
    *rows(
        "wide_resnets",
        _WIDE,
        (
            ("wrn_16_8", {"depth": 16, "widen": 8}, 10_961_370, 1_548_145_664),
            ("wrn_22_6", {"depth": 22, "widen": 6}, 9_658_458, 1_384_566_528),
            ("wrn_28_10", {"depth": 28, "widen": 10}, 36_479_194, 5_243_328_768),
        ),
    ),
    *rows(
        "resnexts",
        _XIE,
        (("resnext29_8x64d", {"cardinality": 8}, 34_426_698, 5_387_266_048),),
        depth=29,
        base_width=64,
    ),
    *rows(
        "densenets",
        _DENSE,
        (("densenet_bc_100_12", {"depth": 100, "growth": 12}, 769_162, 287_929_692),),
    ),
    *rows(
        "resnet9s",
        _PAGE,
        (
            ("resnet9", {}, 6_573_120, 379_261_952),
            ("resnet9_whitened", _WHITENED, 6_570_880, 380_008_448),
        ),
    ),
    *rows(
        "resnet9s",
        _BAIDU,
        (
            ("baidunet9", _BAIDUNET9, 2_440_256, 341_510_656),
            ("baidunet8", _BAIDUNET8, 1_849_930, 303_761_920),
            ("baidunet9p", _BAIDUNET9P, 4_211_786, 624_627_456),
        ),
    ),
    *rows(
        "resnet9s",
        "wbaek/torchskeleton",
        (
            ("resnet9_kakao", {"widths": (64, 128, 256, 128)}, 2_274_880, 245_522_432),
            ("resnet9_kakao_256", {"widths": (64, 128, 256, 256)}, 2_571_328, 252_896_512),
        ),
        {"image_size": 30},
        **_KAKAO,
    ),
    *rows(
        "resnet9s",
        "apple/ml-cifar-10-faster",
        (("resnet9_apple", {**_WHITENED, "ghost_group": 16}, 6_570_880, 380_008_448),),
    ),
    *rows(
        "resnet9s",
        "iyaja/cifar-10-faster",
        (("resnet9_mish", {**_WHITENED, "activation": "mish"}, 6_570_880, 380_008_448),),
    ),
    *rows(
        "resnet9s",
        "LaurentMazare/deep-models",
        (("resnet9_mazare", {"widths": (40, 80, 160, 320)}, 2_570_280, 148_565_120),),
    ),
    *rows("basenets", "bkj/basenet", (("basenet", {}, 5_205_962, 460_002_304),)),
    *rows(
        "airbench",
        _JORDAN,
        (
            ("airbench94", {}, 1_971_352, 118_147_360),
            ("airbench96", _AIRBENCH96, 9_915_416, 451_967_264),
            ("airbench96_proxy", _AIRBENCH96_PROXY, 146_112, 17_085_088),
        ),
    ),
    *rows(
        "airbench",
        "KellerJordan/cifar10-airbench, airbench94_muon.py",
        (("airbench94_muon", {"muon": True}, 1_971_352, 118_147_360),),
    ),
    *rows(
        "airbench",
        "ours: airbench94_muon without whitening",
        (("airbench94_muon_unwhitened", _UNWHITENED, 1_971_640, 118_147_360),),
    ),
    *rows(
        "airbench",
        "hiverge/cifar10-speedrun",
        (("hiverge94", _HIVERGE94, 1_971_352, 118_147_360),),
    ),
    *rows(
        "imagenet_resnets",
        _TORCH_SEEDS,
        (
            ("resnet18_cifar", {"depth": 18}, 11_173_962, 555_422_720),
            ("resnet50_cifar", {"depth": 50}, 23_520_842, 1_297_829_888),
        ),
        stem="cifar",
    ),
    *rows(
        "imagenet_resnets",
        "wang-chen/KervNets",
        (("kervresnet34", {"depth": 34}, 21_282_187, 1_097_223_936),),
        stem="kervolution",
    ),
)
