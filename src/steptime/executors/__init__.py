"""SHELF: how jobs get run: in this machine's processes; on a cluster."""
