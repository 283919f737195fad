"""Stored results as rows that can be queried. No web package."""
