"""SQuAD v1.1 to F1 0.75: the readers of DAWNBench's entries, as these trained them."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Optimizer, Questions, Recipe, Schedule
from dawnbench_tf.recipe.evidence import Published, Reported

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
    optimizer=Optimizer(name="adam", learning_rate=0.001, epsilon=1e-8),
    average=Average(decay=0.999),
    data=Questions(bucket_boundaries=(100, 125, 150, 200, 250, 400)),
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
    optimizer=replace(BIDAF_TF.optimizer, name="adadelta", learning_rate=0.5),
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
    optimizer=Optimizer(
        name="adam", learning_rate=0.001, weight_decay=5e-8, decays="all", clip_norm=10
    ),
    schedule=Schedule(form="linear", epochs=(0, 0.365), factors=(0, 1)),
    average=Average(decay=0.999),
    data=Questions(
        bucket_boundaries=(256,),
        tokenizer="words",
        word_vectors="crawl-300d-2M",
        learned_words=False,
        most_question_tokens=64,
        most_answer_tokens=30,
    ),
    evidence=(
        Published(
            entry="SQuAD/train/dawn_qanet_1tpu.json",
            hours=0.7653,
            best=0.7637,
            hardware="1 TPUv2",
        ),
    ),
)

# hitvoice/DrQA: flags' defaults; their 40 epochs, the entries stop after 10 or 11. Adamax is
# PyTorch's own there, at 0.002: the 0.001 of the entries' misc is a flag that only SGD has. Its
# LSTMs see padding in training, here never; an answer that ends inside a token is left out there.
DRQA = Recipe(
    name="squad/drqa",
    task="squad",
    model="drqa",
    epochs=40,
    batch_size=32,
    optimizer=Optimizer(name="adamax", learning_rate=0.002, epsilon=1e-8, clip_norm=10),
    data=Questions(
        bucket_boundaries=(100, 125, 150, 200, 250, 400, 800),
        tokenizer="spacy",
        word_vectors="glove.840B.300d",
        tuned_words=1000,
        learned_words=False,
        most_question_tokens=64,
        most_answer_tokens=15,
    ),
    evidence=(
        Published("SQuAD/train/dawn_drqa_1t4-gc_pytorch.json", 0.8392, 0.7606, "1 T4 / GCP"),
        Published("SQuAD/train/dawn_drqa_1p4-gc_pytorch.json", 0.9453, 0.762, "1 P4 / GCP"),
    ),
)
DRQA_128 = replace(
    DRQA,
    name="squad/drqa_128",
    batch_size=128,
    evidence=(
        Published(
            entry="SQuAD/train/dawn_drqa_1nv2080-dev.json",
            hours=0.4518,
            best=0.7829,
            hardware="1 NVidia 2080 RTX (dev box)",
        ),
        Published(
            entry="SQuAD/train/dawn_drqa_1p100-ec2.json",
            hours=1.0095,
            best=0.7569,
            hardware="1 V100 / AWS p3.2xlarge",
        ),
        Published(
            entry="SQuAD/train/dawn_drqa_1k80-ec2.json",
            hours=1.3651,
            best=0.7584,
            hardware="1 K80 / AWS p2.xlarge",
        ),
    ),
)

# felixgwu/FastFusionNet: README's command, flags' defaults; its 100 epochs, the entry has 99.
# Difference: the norm that it clips to 20 includes the gradients of the word vectors that stay
# fixed; here the norm is that of the trained weights, so that a step is clipped less often.
FASTFUSIONNET = replace(
    DRQA,
    name="squad/fastfusionnet",
    model="fastfusionnet",
    epochs=100,
    optimizer=replace(DRQA.optimizer, learning_rate=0.001, clip_norm=20),
    evidence=(
        Published(
            entry="SQuAD/train/dawn_fastfusionnet-1080ti.json",
            hours=0.3127,
            best=0.8236,
            hardware="1 NVidia GTX-1080 Ti",
        ),
    ),
)

# google-research/bert, run_squad.py and README: its flags, for BERT-Base on a GPU. Its Adam has no
# bias correction, Keras's has. Of a window without the answer it learns that [CLS] is the answer;
# here such windows are left out.
BERT_BASE = Recipe(
    name="squad/bert_base",
    task="squad",
    model="bert_base_span",
    epochs=2,
    batch_size=12,
    optimizer=Optimizer(
        name="adamw", learning_rate=3e-5, epsilon=1e-6, weight_decay=0.01, clip_norm=1
    ),
    schedule=Schedule(form="linear", epochs=(0, 0.2, 2), factors=(0, 1, 0)),
    data=Questions(
        bucket_boundaries=(96, 128, 160, 192, 256, 381),
        tokenizer="wordpiece",
        most_question_tokens=64,
        most_answer_tokens=30,
        pretrained="uncased_L-12_H-768_A-12",
        sequence_length=384,
    ),
    evidence=(Reported(score=0.885, source="arXiv 1810.04805, table 2: BERT-Base, dev set"),),
)
BERT_LARGE = replace(  # README: on a TPU
    BERT_BASE,
    name="squad/bert_large",
    model="bert_large_span",
    batch_size=24,
    data=replace(BERT_BASE.data, bucket_boundaries=(381,), pretrained="uncased_L-24_H-1024_A-16"),
    evidence=(Reported(score=0.909, source="arXiv 1810.04805, table 2: BERT-Large, dev set"),),
)
# The smaller ones of Turc et al. 2019: four epochs, one of README's rates and batch sizes. Here
# bert_mini stands for PA-Occam-Bert, the fastest inference entry (F1 0.7589, 7.6 ms on a V100),
# whose network, weights and training are not public.
BERT_MINI = replace(
    BERT_BASE,
    name="squad/bert_mini",
    model="bert_mini_span",
    epochs=4,
    batch_size=32,
    optimizer=replace(BERT_BASE.optimizer, learning_rate=3e-4),
    schedule=replace(BERT_BASE.schedule, epochs=(0, 0.4, 4)),
    data=replace(BERT_BASE.data, pretrained="uncased_L-4_H-256_A-4"),
    evidence=(),
)
BERT_TINY = replace(
    BERT_MINI,
    name="squad/bert_tiny",
    model="bert_tiny_span",
    data=replace(BERT_MINI.data, pretrained="uncased_L-2_H-128_A-2"),
)
MINILM = replace(
    BERT_MINI,
    name="squad/minilm",
    model="minilm_span",
    optimizer=replace(BERT_MINI.optimizer, learning_rate=1e-4),
    data=replace(BERT_MINI.data, pretrained="MiniLM-L6-H384-uncased"),
)

RECIPES = (
    BIDAF_TF,
    BIDAF_PAPER,
    QANET_TPU,
    DRQA,
    DRQA_128,
    FASTFUSIONNET,
    BERT_BASE,
    BERT_LARGE,
    BERT_MINI,
    BERT_TINY,
    MINILM,
)
