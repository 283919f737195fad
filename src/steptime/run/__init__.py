"""Run cases until the stopping rule is met, on this machine or by Slurm.

It decides which process comes next; workers measure."""
