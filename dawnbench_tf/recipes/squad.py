"""SQuAD v1.1 to F1 0.75: the readers of DAWNBench's entries, as these trained them."""

from dataclasses import replace

from dawnbench_tf.evidence import Published
from dawnbench_tf.recipe import Recipe

# basic/cli.py: Adam at 0.001, constant, batches of 60, 20,000 steps (14 epochs of ours, which take
# every question of at most 30 words whose answer is within the first 400 of its passage). The
# entries logged the raw weights' F1 after each 1,000 steps, which they call an epoch. Optimizers'
# epsilon is TensorFlow 1's default. Where the answer is in several places, its first is the right
# one here; the seed drew one at each step.
BIDAF_TF = Recipe(
    name="squad/bidaf_tf",
    task="squad",
    model="bidaf",
    epochs=14,
    batch_size=60,
    optimizer="adam",
    learning_rate=0.001,
    epsilon=1e-8,
    average=0.999,
    bucket_boundaries=(100, 125, 150, 200, 250, 400),
    evidence=(
        Published(
            entry="SQuAD/train/dawn_bidaf_1k80-ec2_tensorflow.json",
            hours=7.6359,
            best=0.7533,
            hardware="1 K80 / 61 GB / 4 CPU (Amazon EC2 [p2.xlarge])",
        ),
    ),
)
BIDAF_PAPER = replace(
    BIDAF_TF,
    name="squad/bidaf_paper",
    epochs=12,
    optimizer="adadelta",
    learning_rate=0.5,
    evidence=(),
)

# tensorflow/tpu, experimental/qanet: `build_config`, README. The rate rises over 1,000 steps.
# The entry's rows are evaluations beside training, their epochs none of the data. Contexts of over
# 256 tokens are cut there; in the original at a place drawn so that the answer stays. Unknown words
# are zeros there, and learn one vector here.
QANET_TPU = Recipe(
    name="squad/qanet_tpu",
    task="squad",
    model="qanet_tpu",
    epochs=30,
    batch_size=32,
    optimizer="adam",
    learning_rate=0.001,
    schedule="linear",
    schedule_epochs=(0, 0.365),
    schedule_factors=(0, 1),
    weight_decay=5e-8,
    decays="all",
    clip_norm=10,
    average=0.999,
    bucket_boundaries=(256,),
    tokenizer="words",
    word_vectors="crawl-300d-2M",
    learned_words=False,
    most_question_tokens=64,
    most_answer_tokens=30,
    evidence=(
        Published(
            entry="SQuAD/train/dawn_qanet_1tpu.json",
            hours=0.7653,
            best=0.7637,
            hardware="1 TPUv2",
        ),
    ),
)

RECIPES = (BIDAF_TF, BIDAF_PAPER, QANET_TPU)
