"""Where batches come from: synthetic now; real sets, formats and tiers beside it."""
