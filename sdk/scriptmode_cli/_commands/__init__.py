"""The commands of ``scriptmode``, one module for each verb.

``scriptmode jobs`` is in `scriptmode_cli._cloud_ml_engine`.
"""
