"""What records say: statistics across processes, flags, comparisons.

Everything is derived from raw samples."""
