"""The user's source code on its way to the hosts: a reproducible archive, a git repository, files of rules."""
