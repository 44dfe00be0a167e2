"""DAWNBench for TensorFlow: time and cost to train a model to a threshold, and to infer with it.

Here: commands, the modules with a main, which may import everything and which nobody imports; and
what the rooms share, from task and clock to files and flags. Rooms: `recipe`, `recipes`, `models`,
`data`, `training`, `inference`, `submission`, `runs`, `ranking`, `studies`; the `__init__` of each
says what lives there. Two names are for everybody: `models`, and `tta.TimeToAccuracy`, the one
module here that needs TensorFlow.

May import: models, recipe, recipes, data. Never: TensorFlow, training, inference, submission,
ranking.
"""

__version__ = "0.4.0.dev0"
