"""Where batches come from: synthetic batches, real datasets, and the storage they lie on."""
