"""The nouns: case, protocol, job, measurement, record, errors. Standard library only, no I/O."""
