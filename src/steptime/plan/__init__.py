"""What users write in TOML: plans and machine files. Standard library only, reads no file."""
