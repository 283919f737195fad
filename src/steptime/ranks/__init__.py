"""Several processes that do every step of a case together: start them, let them agree, merge what they measured."""
