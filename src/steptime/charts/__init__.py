"""Rows and records as Vega-Lite charts, and charts as files. No web package."""
