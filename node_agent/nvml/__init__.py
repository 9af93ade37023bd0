"""Access to NVML: the port, the driver over pynvml, and the simulated library."""
