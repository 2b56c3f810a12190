"""The user's source code on its way to the hosts.

source_archive  a reproducible ``sourcedir.tar.gz``
git             a checkout of a Git repository
rule_files      programs of debugger rules that are files of this machine
"""
