"""This machine, for every part: clock, data directory, drafts of files, YAML files, programs, the installation."""
