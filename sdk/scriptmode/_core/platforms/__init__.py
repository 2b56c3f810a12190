"""Training platforms behind one protocol."""
