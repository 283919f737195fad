"""Mistakes that lowerings really make, one at a time: does a certificate see each of them?

`python -m benchmarks.mistakes` tries them all and writes a table; `--clean N` certifies lowerings
as they are, and counts false alarms."""
