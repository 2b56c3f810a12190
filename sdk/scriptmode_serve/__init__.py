"""Amazon SageMaker's training API over HTTP, whose jobs the local service runs."""
