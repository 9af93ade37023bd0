"""What every MigDriver promises, tried on the simulated library and, reading only, on a real one."""
