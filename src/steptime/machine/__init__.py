"""The machine: its hardware, its present state, its measured peaks, and a monitor of workers."""
