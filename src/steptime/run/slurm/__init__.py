"""Hands jobs to Slurm as arrays: a thin layer over sbatch. Whoever submits may leave; a campaign's folder remembers.

client: Slurm's commands; script: arrays; driver: runs on a node; folder: whose result counts; ledger: what was lost."""
