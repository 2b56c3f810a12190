"""The commands of ``scriptmode``, one module for each verb."""
