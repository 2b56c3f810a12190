"""Texts that people read: messages of errors, warnings, colours, untrusted text in a terminal, a line of progress."""
