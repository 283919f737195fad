"""Benchmark deep-learning training and inference, with error bars you can defend."""

__version__ = "0.1.0"
