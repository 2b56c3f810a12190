"""The commands of ``scriptmode``, one module for each verb.

``scriptmode jobs`` is in `scriptmode.cli.cloud_ml_engine`.
"""
