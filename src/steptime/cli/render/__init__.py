"""What commands print: tables, progress, sentences."""
