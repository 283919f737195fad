"""The Performance Guide: stored results in a browser."""
