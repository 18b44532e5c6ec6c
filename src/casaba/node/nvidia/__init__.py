"""NVIDIA's side of the host: NVML by ctypes, sysfs, and the NVIDIA Container Toolkit."""
