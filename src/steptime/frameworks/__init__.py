"""A plug-in folder: each package lowers a graph to a program of one framework.

One process imports one framework."""
