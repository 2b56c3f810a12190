"""The user's source code on its way to the hosts."""
