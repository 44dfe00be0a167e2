"""Compares training steps of BiDAF with PyTorch: same network, batch and machine, in turn.

    .venv/bin/pip install -c constraints.txt -e ".[bench]"
    .venv/bin/python scripts/benchmark_reader.py

Batches of 60 questions of 30 words on passages of 400, hidden size 100, Adam. There is no padding,
so PyTorch's LSTMs get unpacked batches: packed ones are three times slower.
"""

import statistics
import time

import numpy as np
import side_by_side

from dawnbench_tf import machine

BATCH, CONTEXT, QUESTION, WORDS, CHARACTERS, STEPS = 60, 400, 30, 5000, 100, 3


def batch():
    """Draws a batch: token and character ids of contexts and questions, and answer spans."""
    rng = np.random.default_rng(0)
    inputs = []
    for length in (CONTEXT, QUESTION):
        inputs += [rng.integers(2, WORDS, (BATCH, length), np.int32)]
        inputs += [rng.integers(2, CHARACTERS, (BATCH, length, 16), np.int32)]
    return inputs, rng.integers(0, CONTEXT, (BATCH, 2), np.int32)


def seconds(step) -> float:
    """Returns the median seconds of a step, after two warm-up steps."""
    times = []
    for _ in range(2 + STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def ours(precision: str) -> float:
    """Returns the seconds of a training step of this package's model."""
    with machine.importing():
        from dawnbench_tf import models

    model = models.build("bidaf", trained_words=WORDS, characters=CHARACTERS, dtype=precision)
    return step_of_ours(model, *batch())


def step_of_ours(model, inputs, ends) -> float:
    """Returns the seconds of a training step of a Keras model on a batch."""
    import tensorflow as tf

    from dawnbench_tf.training import losses

    optimizer, loss_function = tf.keras.optimizers.Adam(0.001), losses.SpanCrossEntropy()
    inputs, ends = (tf.nest.map_structure(tf.constant, part) for part in (inputs, ends))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = loss_function(ends, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return seconds(lambda: step().numpy())


def _highway(width):
    """Builds a highway layer in PyTorch."""
    import torch
    from torch import nn

    class Highway(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.transform, self.gate = nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, x):
            gate = torch.sigmoid(self.gate(x))
            return gate * torch.relu(self.transform(x)) + (1 - gate) * x

    return Highway(width)


def _bidaf():
    """Builds BiDAF in PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Bidaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.words = nn.Embedding(CHARACTERS, 8), nn.Embedding(WORDS, 100)
            self.spelling = nn.Conv1d(8, 100, 5)
            self.highways = nn.Sequential(_highway(200), _highway(200))
            lstms = (
                nn.LSTM(n, 100, batch_first=True, bidirectional=True) for n in (200, 800, 200, 1400)
            )
            self.phrase, self.first, self.second, self.last = lstms
            self.w, self.b = nn.Parameter(torch.randn(3, 200) / 14), nn.Parameter(torch.zeros(()))
            self.starts, self.ends = nn.Linear(1000, 1), nn.Linear(1000, 1)
            self.drop = nn.Dropout(0.2)

        def embed(self, words, letters):
            batch, length, size = letters.shape
            x = self.drop(self.letters(letters)).view(-1, size, 8).transpose(1, 2)
            x = torch.relu(self.spelling(x)).amax(2).view(batch, length, 100)
            return self.highways(torch.cat([x, self.words(words)], 2))

        def forward(self, words, letters, question, question_letters):
            h, _ = self.phrase(self.embed(words, letters))
            u, _ = self.phrase(self.drop(self.embed(question, question_letters)))
            s = (h * self.w[2]) @ u.transpose(1, 2) + self.b
            s = s + (h @ self.w[0])[:, :, None] + (u @ self.w[1])[:, None]
            attended = f.softmax(s, 2) @ u
            context = f.softmax(s.amax(2), 1)[:, None] @ h
            g = torch.cat([h, attended, h * attended, h * context], 2)
            m, _ = self.first(self.drop(g))
            m, _ = self.second(self.drop(m))
            start = self.starts(self.drop(torch.cat([m, g], 2)))[..., 0]
            a = (f.softmax(start, 1)[:, None] @ m).expand_as(m)
            m, _ = self.last(self.drop(torch.cat([g, m, a, m * a], 2)))
            return start, self.ends(self.drop(torch.cat([m, g], 2)))[..., 0]

    return Bidaf()


def theirs(precision: str) -> float:
    """Returns the seconds of a training step of the same network in PyTorch."""
    model = _bidaf()
    # PyTorch's LSTMs have two bias vectors instead of one: 400 more parameters per direction.
    count = sum(p.numel() for p in model.parameters()) - 4 * 2 * 400
    if count != 2_570_703 + 100 * WORDS + 8 * CHARACTERS:
        raise SystemExit("the two networks are not the same")
    return step_of_theirs(model, precision, *batch())


def step_of_theirs(model, precision, inputs, ends) -> float:
    """Returns the seconds of a training step of a PyTorch model (start and end logits)."""
    import torch
    from torch.nn import functional as f

    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    inputs, ends = [torch.tensor(x) for x in inputs], torch.tensor(ends).long()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision != "float32"):
            start, end = model(*inputs)
        loss = f.cross_entropy(start.float(), ends[:, 0]) + f.cross_entropy(end.float(), ends[:, 1])
        loss.backward()
        optimizer.step()

    return seconds(step)


if __name__ == "__main__":
    sides = {"PyTorch": theirs, "ours": ours}
    side_by_side.main(__file__, sides, ("float32", "mixed_bfloat16"), "s/step")
