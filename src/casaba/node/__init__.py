"""The host: NVML, the NVIDIA toolkit, CDI files, policy files, regions, checkpoint.

The only room that touches the machine. Carries out what policy/ planned; decides nothing about
claims. Knows nothing of API servers and sockets. Blocking: services call it from threads.
"""
