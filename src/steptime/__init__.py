"""steptime measures deep learning: how fast, how efficiently, why, and how sure we are."""

__version__ = "0.1.0"
