"""Types of the `models.build` arguments that belong to single families of networks."""

from typing import TypedDict


class Overrides(TypedDict, total=False):
    """Arguments of the families' `body` functions, which document them."""

    # Image classifiers.
    activation: str
    auxiliary: bool
    base_width: int
    block: str
    cardinality: int
    cells: int
    compression: float
    convolutions: int
    depth: int
    filters: int
    final_survival: float
    ghost_group: int
    growth: int
    halvings: tuple[str, ...]
    head: str
    initializer: str
    leaky_slope: float
    logit_scale: float
    muon: bool
    norm_epsilon: float
    norm_momentum: float
    norm_scale: bool
    padding: str
    preactivation: str | None
    residual: tuple[int, ...]
    shortcut: str
    stem: str
    stem_filters: int
    strided: str
    units: int
    version: str
    whitened: bool
    whitening_bias: bool
    whitening_examples: int
    widen: int
    width: int
    widths: tuple[int, ...]
    zero_last_norm: bool
    # Readers.
    character_filters: int
    character_width: int
    characters: int
    cls_id: int
    dropout: float  # also an argument of AmoebaNets
    fixed_words: int
    heads: int
    hidden: int
    layer_dropout: float
    layers: int
    pieces: int
    positions: int
    sep_id: int
    tags: tuple[int, int]
    trained_words: int
    vector_width: int
