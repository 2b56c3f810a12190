"""The runtime on each training host: reads the platform's files, runs the user's script, reports the outcome.

Public to users are the command ``train``, ``sagemaker_training:main`` and the package `tensorflow`. The SDK uses
`contract`, `settings`, the package `files`, `processes.streams.Sink` and `preview`, and runs `host.probe`. Every other
module is private to the runtime and may change.
"""
