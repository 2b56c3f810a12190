"""Processes of one host: started, signalled and reaped; their output relayed; what the supervisor's loop watches."""
