"""Files made by others: directories opened beneath a descriptor, archives unpacked, a launcher's scratch directory."""
