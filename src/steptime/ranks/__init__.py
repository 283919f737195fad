"""The ranks of a case: start them, synchronise them, and merge their measurements."""
