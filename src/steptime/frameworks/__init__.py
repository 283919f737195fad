"""SHELF: one folder each: lower a graph, make a step, wait for it. One process imports one framework."""
