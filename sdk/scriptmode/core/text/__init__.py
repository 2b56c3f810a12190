"""Texts that people read: messages of errors, tracebacks, colours, untrusted text in a terminal, a line of progress."""
