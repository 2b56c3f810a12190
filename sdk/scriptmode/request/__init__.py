"""The service's CreateTrainingJob request: rendered from a spec, parsed into arguments, repeated, validated."""
