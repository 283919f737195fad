"""Where attempts are kept. Journals in a folder are the truth; the rest follows from them."""
