"""Platforms that users name: `local`. Amazon SageMaker needs none."""
