"""Stored results as one offline page. No web package."""
