"""Network: arguments of the model that a recipe sets."""

from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.settings import Checked, documented, setting

BERTS = """uncased_L-2_H-128_A-2 uncased_L-4_H-256_A-4 uncased_L-4_H-512_A-8 uncased_L-8_H-512_A-8
    uncased_L-12_H-768_A-12 uncased_L-24_H-1024_A-16 cased_L-12_H-768_A-12 cased_L-24_H-1024_A-16
    MiniLM-L6-H384-uncased""".split()  # names of google-research/bert and Microsoft's UniLM


@documented
@dataclass(frozen=True)
class Network(Checked):
    """Model arguments that a recipe sets. Raises Refusal if invalid."""

    GROUP: ClassVar[str] = "images"
    final_survival: float = setting(
        0.0,
        "stochastic depth, for CIFAR ResNets: survival probability of the last residual unit; it "
        "falls linearly from 1 at the input; 0: the model's own value",
        high=1,
    )
    zero_last_norm: bool = setting(
        False,
        "initialize the scale (gamma) of the last BN of each residual branch to 0; for ResNets "
        "for ImageNet",
    )
    auxiliary_weight: float = setting(
        0.0,
        "weight of an auxiliary head's loss, which is added to the main loss; for AmoebaNets; 0: "
        "no auxiliary head",
    )
    synchronized_batch_norm: bool = setting(
        True,
        "compute BN statistics over the global batch, as on one device; if not, over each "
        "replica's part of it, which needs less communication",
    )

    pretrained: str = setting(
        "",
        "published weights to start from. Image models: a file (.pth, .safetensors, .h5, or a "
        "TensorFlow checkpoint's .index). BERTs: the name of a folder in --data_dir with its "
        "vocab.txt and its weights; an embedded data set uses neither",
        group="fine-tuning",
    )

    frozen_parts: int = setting(
        0,
        "number N of parts whose pretrained weights stay as they are, from the input on: 1 a "
        "ResNet's stem, 2 also its first stage, ...; 1 a BERT's embeddings, 2 also its first "
        "block, ...; their BNs keep the pretrained statistics",
        group="fine-tuning",
        needs="pretrained",
    )

    @property
    def cased(self) -> bool:
        """Whether the pretrained BERT distinguishes upper and lower case."""
        return self.pretrained.startswith("cased")
