"""Where attempts are kept: journals in a folder. Journals are the truth."""
