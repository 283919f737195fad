"""Hand jobs to Slurm as arrays: a thin layer over sbatch.

Submitting returns at once, and the campaign's folder remembers everything. Modules:
client calls Slurm's commands, script writes arrays, driver runs on a node, folder decides which
result counts, ledger finds what was lost."""
