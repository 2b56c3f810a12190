"""Open MPI: its ranks and daemons, what mpirun writes of them, and how it reaches other hosts."""
