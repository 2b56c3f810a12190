"""What the local platform uses of the operating system: durable files, ports, processes, background tasks."""
