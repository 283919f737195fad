"""Runs cases: which processes next, in random order, until the stopping rule is met; on this machine or by Slurm."""
