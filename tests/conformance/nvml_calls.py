"""A program on NVIDIA's own binding of NVML; prints what it found as JSON."""

import json
from importlib import import_module
from typing import Any

nvml: Any = import_module("cuda.bindings.nvml")


def main() -> None:
    nvml.init_v2()
    card = nvml.device_get_handle_by_index_v2(0)
    memory = nvml.device_get_memory_info_v2(card)
    found = {
        "driver": nvml.system_get_driver_version(),
        "cuda": nvml.system_get_cuda_driver_version_v2(),
        "count": nvml.device_get_count_v2(),
        "name": nvml.device_get_name(card),
        "uuid": nvml.device_get_uuid(card),
        "memory_mib": [memory.total >> 20, memory.used >> 20, memory.free >> 20],
        "busy": nvml.device_get_utilization_rates(card).gpu,
        "processes": len(nvml.device_get_compute_running_processes_v3(card)),
        "capability": list(nvml.device_get_cuda_compute_capability(card)),
    }
    try:
        nvml.device_get_process_utilization(card, 0)
    except nvml.NotFoundError:
        found["samples"] = "none"
    try:
        nvml.device_get_fan_speed(card)
    except nvml.NotSupportedError:
        found["fan"] = "none"
    nvml.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
