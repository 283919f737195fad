"""The nouns: case, plan, protocol, measurement, record, errors. Standard library only, no I/O."""
