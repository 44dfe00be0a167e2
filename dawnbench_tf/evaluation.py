"""How good the model is now: every test example through it exactly once, under any strategy."""

import json
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from dawnbench_tf import data, files, scores, spans

BATCH = 500  # examples at a time, all replicas together; rounded up to a multiple of them


class Evaluator:
    """Call it for `{column: value}` over the task's whole test set; `outputs` are what was scored.

    With a moving average of the weights (`recipe.average`), that is what is evaluated.
    """

    def __init__(self, task, recipe, model, splits, strategy, data_format):
        replicas = strategy.num_replicas_in_sync
        self._batch = -(-BATCH // replicas) * replicas
        self._pipeline, self._score = data.pipeline(task), scores.SCORES[task.score]
        self._batches = self._pipeline.test(splits, recipe, strategy, data_format, self._batch)
        self._model, self._splits, self._strategy = model, splits, strategy
        self.outputs = None

        @tf.function(reduce_retracing=True)
        def forward(inputs):
            outputs = strategy.run(lambda inputs: model(inputs, training=False), args=(inputs,))
            return strategy.gather(outputs, axis=0)

        self._forward = forward

    def __call__(self) -> dict[str, float]:
        with self._averaged():
            outputs = [self._forward(inputs).numpy() for inputs in self._batches]
        collect = self._pipeline.collect
        self.outputs = collect(outputs, self._splits, self._strategy, self._batch)
        return self._score(self.outputs, self._pipeline.references(self._splits))

    def save(self, folder: Path) -> None:
        """Writes the last answers to questions, in the official evaluator's form."""
        if isinstance(self.outputs, spans.Answers):
            found = scores.predictions(self.outputs, self._splits)
            text = json.dumps(found, ensure_ascii=False) + "\n"
            files.write_whole(folder / "predictions.json", text)

    @contextmanager
    def _averaged(self):
        """Inside, the model has its weights' moving averages, if its optimizer keeps them."""
        optimizer = getattr(self._model.optimizer, "inner_optimizer", self._model.optimizer)
        averaged = getattr(optimizer, "use_ema", False)
        if averaged:
            self._swap(optimizer)
        try:
            yield
        finally:
            if averaged:
                self._swap(optimizer)

    def _swap(self, optimizer):
        """Exchanges weights and their moving averages, on all replicas alike."""
        weights = self._model.trainable_variables
        with self._strategy.scope():
            for pair in zip(weights, optimizer._model_variables_moving_average, strict=True):
                weight, average = (tf.identity(variable) for variable in pair)
                pair[0].assign(average)
                pair[1].assign(weight)
