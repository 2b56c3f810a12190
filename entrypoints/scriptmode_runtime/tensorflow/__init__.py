"""The only rooms that import TensorFlow."""
