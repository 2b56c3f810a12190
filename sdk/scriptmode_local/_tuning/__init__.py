"""Tuning jobs on this machine: CreateHyperParameterTuningJob requests, whose training jobs the local platform runs.

- `tuning_service`: `LocalTuning`, the service's calls
- `tuning_store`: the record of tuning jobs on disk
- `tuning_agent`: the detached process that starts the training jobs of one tuning job
- `search`: the values to try next, by Optuna
- `tuning_response`: a tuning job in the service's shapes
"""
