"""The service's CreateTrainingJob request. The only package that spells AWS's field names; it has no effects."""
