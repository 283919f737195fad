"""One file per command. Start-up loads neither NumPy nor a framework."""
