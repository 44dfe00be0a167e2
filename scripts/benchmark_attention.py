"""Compares training steps of BERT and QANet with PyTorch: same networks, batches and machine.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    .venv/bin/python scripts/benchmark_attention.py [ROUNDS]

Batches of 32 questions without padding: minilm_span (6 layers, width 384) on sequences of 192
WordPieces; Google's QANet on contexts of 256 words and questions of 30. Optimizer: Adam; dropout
rates: those of each network. PyTorch's BERT uses its TransformerEncoderLayer.
"""

import numpy as np
import side_by_side
from benchmark_reader import step_of_ours, step_of_theirs

from dawnbench_tf import machine

BATCH, WORDS, PIECES = 32, 5000, 30_522
LENGTHS = {"minilm_span": (169, 20), "qanet_tpu": (256, 30)}  # tokens of context and question


def batch(network: str):
    """Draws a batch: token ids of contexts and questions, and answer spans (BATCH, 2)."""
    rng, lengths = np.random.default_rng(0), LENGTHS[network]
    inputs = [rng.integers(200, WORDS, (BATCH, length), np.int32) for length in lengths]
    return inputs, rng.integers(0, lengths[0], (BATCH, 2), np.int32)


def ours(case: str) -> float:
    """Returns the seconds of a training step of this package's model."""
    with machine.importing():
        from dawnbench_tf import models

    network, precision = case.split()
    sizes = {"pieces": PIECES} if network == "minilm_span" else {"trained_words": WORDS}
    return step_of_ours(models.build(network, **sizes, dtype=precision), *batch(network))


def _bert():
    """Builds minilm_span in PyTorch: context and question ids -> start and end logits."""
    import torch
    from torch import nn

    class Bert(nn.Module):
        def __init__(self, width=384, layers=6, heads=12):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(n, width) for n in (PIECES, 2, 512))
            self.norm, self.drop = nn.LayerNorm(width, 1e-12), nn.Dropout(0.1)
            settings = {"activation": "gelu", "layer_norm_eps": 1e-12, "batch_first": True}
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, **settings)
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.ends = nn.Linear(width, 2)

        def forward(self, context, question):
            one = torch.ones_like(context[:, :1])
            ids = torch.cat([101 * one, question, 102 * one, context, 102 * one], 1)
            first = question.shape[1] + 2
            positions = torch.arange(ids.shape[1]).expand_as(ids)
            inputs = ids, (positions >= first).long(), positions
            x = sum(table(indices) for table, indices in zip(self.tables, inputs, strict=True))
            x = self.layers(self.drop(self.norm(x)))
            return self.ends(x[:, first:-1]).unbind(-1)

    return Bert()


def _qanet_block(convolutions, width=128):
    """Builds QANet's encoder block in PyTorch: pre-norm convolutions, attention, dense layers."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = nn.ModuleList(
                nn.Sequential(
                    nn.Conv1d(width, width, 7, padding=3, groups=width, bias=False),
                    nn.Conv1d(width, width, 1),
                    nn.ReLU(),
                )
                for _ in range(convolutions)
            )
            self.attention = nn.MultiheadAttention(width, 4, 0.1, bias=False, batch_first=True)
            self.dense = nn.Sequential(
                nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
            )
            self.norms = nn.ModuleList(nn.LayerNorm(width, 1e-6) for _ in range(convolutions + 3))
            self.drop = nn.Dropout(0.25)
            falls = 1e4 ** (-torch.arange(width // 2) / (width // 2 - 1))
            angles = torch.arange(512)[:, None] * falls
            self.register_buffer("signal", torch.cat([angles.sin(), angles.cos()], 1))

        def forward(self, x):
            x = x + self.signal[: x.shape[1]]
            for convolution, norm in zip(self.convolutions, self.norms, strict=False):
                x = x + self.drop(convolution(norm(x).transpose(1, 2)).transpose(1, 2))
            normal = self.norms[-3](x)
            x = x + self.drop(self.attention(normal, normal, normal, need_weights=False)[0])
            x = x + self.drop(self.dense(self.norms[-2](x)))
            return self.norms[-1](x)

    return Block()


def _qanet():
    """Builds the entry's QANet in PyTorch: context and question ids -> start and end logits."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Qanet(nn.Module):
        def __init__(self, width=128):
            super().__init__()
            self.words, self.project = nn.Embedding(WORDS, 300), nn.Linear(300, width)
            self.embedding_encoder, self.model_encoder = _qanet_block(4), _qanet_block(2)
            self.w = nn.Parameter(torch.randn(3, width) / width**0.5)
            self.both = nn.Linear(4 * width, width)
            self.starts, self.ends = nn.Linear(2 * width, 1), nn.Linear(2 * width, 1)
            self.drop, self.last = nn.Dropout(0.15), nn.Dropout(0.3)

        def forward(self, context, question):
            texts = (self.project(self.drop(self.words(ids))) for ids in (context, question))
            c, q = (self.drop(self.embedding_encoder(x)) for x in texts)
            s = (c * self.w[2]) @ q.transpose(1, 2)
            s = s + (c @ self.w[0])[:, :, None] + (q @ self.w[1])[:, None]
            to_question, to_context = f.softmax(s, 2), f.softmax(s, 1)
            a, b = to_question @ q, to_question @ (to_context.transpose(1, 2) @ c)
            x = self.both(torch.cat([c, a, c * a, c * b], 2))
            states = []
            for _ in range(4):
                x = self.last(self.model_encoder(x))
                states.append(x)
            start = self.starts(torch.cat([states[1], states[2]], 2))
            end = self.ends(torch.cat([states[1], states[3]], 2))
            return start[..., 0], end[..., 0]

    return Qanet()


PARAMETERS = {"minilm_span": 22_566_146, "qanet_tpu": 476_122 + 300 * (WORDS - 2)}


def theirs(case: str) -> float:
    """Returns the seconds of a training step of the same network in PyTorch."""
    network, precision = case.split()
    model = {"minilm_span": _bert, "qanet_tpu": _qanet}[network]()
    count = sum(p.numel() for p in model.parameters())
    if count != PARAMETERS[network]:
        raise SystemExit(f"the two networks are not the same: {count:,} parameters in PyTorch")
    return step_of_theirs(model, precision, *batch(network))


if __name__ == "__main__":
    cases = [
        f"{name} {precision}" for name in LENGTHS for precision in ("float32", "mixed_bfloat16")
    ]
    side_by_side.main(__file__, {"PyTorch": theirs, "ours": ours}, cases, "s/step", rounds=3)
