"""The record of a job on disk: its request, its state, its logs. One directory for each job."""
