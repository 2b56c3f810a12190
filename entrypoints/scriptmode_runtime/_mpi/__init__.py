"""Open MPI: its daemons, what mpirun writes of its ranks, and how it reaches other hosts."""
