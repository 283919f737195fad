"""Measure one case in this process: clock, timing, warm-up, side channels.

Knows no framework and no file format."""
