"""What one host has: processors, accelerators and installed programs, found by looking at files only."""
