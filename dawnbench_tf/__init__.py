"""DAWNBench for TensorFlow: how long, and for how much, until a model is good enough."""

__version__ = "0.1.0"
