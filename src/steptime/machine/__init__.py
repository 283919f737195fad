"""The machine itself: what it is, how it is at the moment, what it can reach, and a watch beside a worker."""
