"""SQuAD v1.1 to F1 0.75: readers with the training of DAWNBench's entries, and BERTs."""

from dataclasses import replace

from dawnbench_tf.recipe import Average, Network, Optimizer, Questions, Recipe, Schedule

# Source: basic/cli.py of BiDAF's seed. Adam at a constant 0.001, batch size 60, 20,000 steps: 14 of
# our epochs, which contain every question of at most 30 words whose answer is within the first 400
# words of its passage. The entries call 1,000 steps an epoch and logged F1 of the weights
# themselves, not of their average. Epsilon is TensorFlow 1's default.
# Difference: of several occurrences of an answer the first one is the target; the seed drew one at
# each step.
BIDAF_TF = Recipe(
    name="squad/bidaf_tf",
    task="squad",
    model="bidaf",
    epochs=14,
    batch_size=60,
    optimizer=Optimizer(name="adam", learning_rate=0.001, epsilon=1e-8),
    average=Average(decay=0.999),
    data=Questions(bucket_boundaries=(100, 125, 150, 200, 250, 400)),
)
BIDAF_PAPER = BIDAF_TF.with_values(
    name="squad/bidaf_paper", epochs=12, optimizer="adadelta", learning_rate=0.5
)

# Source: experimental/qanet of tensorflow/tpu, `build_config` and README. Warmup over 1,000 steps.
# The entry's rows are evaluations that ran beside training; their epochs do not count the data.
# Differences: contexts of over 256 tokens are cut at 256, there at a random position that keeps the
# answer. Unknown words share one learned vector, there zeros.
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
)

# Source: hitvoice/DrQA, defaults of its flags: 40 epochs, where the entries stop after 10 or 11.
# Adamax has PyTorch's default rate, 0.002: the 0.001 in the entries' `misc` is a flag for SGD only.
# Differences: its LSTMs process padding in training, ours never do. It leaves out answers that end
# inside a token, tunes the most frequent words of training and dev questions, ours of training
# alone, starts the unknown word's vector at 0, and sorts its batches by length once.
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
)
DRQA_128 = replace(DRQA, name="squad/drqa_128", batch_size=128)

# Source: felixgwu/FastFusionNet, README's command and defaults of its flags: 100 epochs, of which
# the entry has 99, as its loop begins at 1.
# Differences: it clips by a norm that includes the gradients of fixed word vectors; here only
# trained weights count, so fewer steps are clipped. Its batches are of mixed lengths, and its
# unknown word's vector starts as N(0, 1).
FASTFUSIONNET = DRQA.with_values(
    name="squad/fastfusionnet", model="fastfusionnet", epochs=100, learning_rate=0.001, clip_norm=20
)

# Source: google-research/bert, flags of run_squad.py and README for BERT-Base on a GPU. Its loss is
# the mean of both ends', here it is their sum: so epsilon and clip_norm are twice its 1e-6 and 1.
# Differences: its Adam has no bias correction. Windows without the answer, and questions of more
# than 64 WordPieces, are left out of training; it cuts the questions.
BERT_BASE = Recipe(
    name="squad/bert_base",
    task="squad",
    model="bert_base_span",
    epochs=2,
    batch_size=12,
    network=Network(pretrained="uncased_L-12_H-768_A-12"),
    optimizer=Optimizer(
        name="adamw", learning_rate=3e-5, epsilon=2e-6, weight_decay=0.01, clip_norm=2
    ),
    # Its rate falls from step 0 on, and warmup replaces it: it drops to 0.9 where warmup ends.
    schedule=Schedule(form="linear", epochs=(0, 0.1999, 0.2, 2), factors=(0, 1, 0.9, 0)),
    data=Questions(
        bucket_boundaries=(96, 128, 160, 192, 256, 381),
        tokenizer="wordpiece",
        most_question_tokens=64,
        most_answer_tokens=30,
        sequence_length=384,
    ),
)
BERT_LARGE = BERT_BASE.with_values(  # README's settings for a TPU
    name="squad/bert_large",
    model="bert_large_span",
    batch_size=24,
    pretrained="uncased_L-24_H-1024_A-16",
    bucket_boundaries=(381,),
)
# Small BERTs of Turc et al. 2019: four epochs; learning rate and batch size are among those that
# the README suggests. PA-Occam-Bert, the fastest inference entry (F1 0.7589, 7.6 ms on a V100), is
# BERT-Base with 128 tokens and faster kernels, scored on SQuAD 2.0; bert_mini is fast by its size.
BERT_MINI = BERT_BASE.with_values(
    name="squad/bert_mini",
    model="bert_mini_span",
    epochs=4,
    batch_size=32,
    learning_rate=3e-4,
    schedule_epochs=(0, 0.3999, 0.4, 4),
    pretrained="uncased_L-4_H-256_A-4",
)
BERT_TINY = BERT_MINI.with_values(
    name="squad/bert_tiny", model="bert_tiny_span", pretrained="uncased_L-2_H-128_A-2"
)
MINILM = BERT_MINI.with_values(
    name="squad/minilm",
    model="minilm_span",
    learning_rate=1e-4,
    pretrained="MiniLM-L6-H384-uncased",
)
