"""HAMi's metrics as its release 2.9 and hami-dra-monitor have them: labels by name."""

Names = dict[str, frozenset[str]]


def _labels(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BUILD = _labels("zone version revision build_date go_version compiler platform")

_CARD = _labels("zone node device_uuid device_index device_type")
_CONTAINER = _labels("zone namespace node pod container_index device_uuid")
SCHEDULER: Names = {
    "hami_gpu_memory_limit_bytes": _CARD,
    "hami_gpu_core_limit_ratio": _CARD,
    "hami_gpu_memory_allocated_bytes": _CARD | {"device_cores"},
    "hami_gpu_shared_count": _CARD,
    "hami_gpu_core_allocated_ratio": _CARD,
    "hami_node_gpu_overview": _CARD | {"device_cores", "device_memory_limit"},
    "hami_node_gpu_memory_allocated_ratio": _CARD,
    "hami_resource_quota_used": _labels("zone namespace quota_name limit"),
    "hami_resource_quota_limit": _labels("zone namespace quota_name"),
    "hami_vgpu_memory_allocated_bytes": _CONTAINER,
    "hami_vgpu_core_allocated_ratio": _CONTAINER,
    "hami_build_info": _BUILD,
}
"""Without MIG instances, which no card here has."""

_DRA_CARD = _labels("node device_uuid device_index device_name device_type")
_DRA_POD = _labels("node device_uuid namespace pod")
DRA_MONITOR: Names = {
    "hami_dra_gpu_core_limit_ratio": _DRA_CARD,
    "hami_dra_gpu_core_allocated_ratio": _DRA_CARD,
    "hami_dra_gpu_memory_limit_bytes": _DRA_CARD,
    "hami_dra_gpu_memory_allocated_bytes": _DRA_CARD,
    "hami_dra_vgpu_core_allocated_ratio": _DRA_POD,
    "hami_dra_vgpu_memory_allocated_bytes": _DRA_POD,
}

_OLD_DRA_CARD = _labels("nodeid deviceuuid deviceidx devicename devicebrand deviceproductname")
_OLD_DRA_POD = _OLD_DRA_CARD | {"podnamespace", "podname"}
OLD_DRA_MONITOR: Names = {
    "GPUDeviceCoreLimit": _OLD_DRA_CARD,
    "GPUDeviceMemoryLimit": _OLD_DRA_CARD,
    "GPUDeviceCoreAllocated": _OLD_DRA_CARD,
    "GPUDeviceMemoryAllocated": _OLD_DRA_CARD,
    "vGPUDeviceCoreAllocated": _OLD_DRA_POD,
    "vGPUDeviceMemoryAllocated": _OLD_DRA_POD,
}

_USED = _labels("namespace pod container vdevice_index device_uuid zone")
_HOST = _labels("node device_index device_uuid device_type zone")
VGPU_MONITOR: Names = {
    "hami_host_gpu_memory_used_bytes": _HOST,
    "hami_host_gpu_utilization_ratio": _HOST,
    "hami_host_gpu_memory_controller_utilization_ratio": _HOST,
    "hami_vgpu_memory_used_bytes": _USED,
    "hami_vgpu_memory_limit_bytes": _USED,
    "hami_container_device_memory_bytes": _USED,
    "hami_container_device_utilization_ratio": _USED,
    "hami_container_last_kernel_elapsed_seconds": _USED,
    "hami_vgpu_memory_context_bytes": _USED,
    "hami_vgpu_memory_module_bytes": _USED,
    "hami_vgpu_memory_buffer_bytes": _USED,
    "hami_build_info": _BUILD,
}
"""Without MIG instances. HAMi leaves `node` out of the memory controller's, which is a fault."""

_OLD_USED = _labels("podnamespace podname ctrname vdeviceid deviceuuid zone")
_OLD_HOST = _labels("nodeid deviceidx deviceuuid devicetype zone")
OLD_VGPU_MONITOR: Names = {
    "HostGPUMemoryUsage": _OLD_HOST,
    "HostCoreUtilization": _OLD_HOST,
    "vGPU_device_memory_usage_in_bytes": _OLD_USED,
    "vGPU_device_memory_limit_in_bytes": _OLD_USED,
    "Device_memory_desc_of_container": _OLD_USED | {"context", "module", "data", "offset"},
    "Device_utilization_desc_of_container": _OLD_USED,
    "Device_last_kernel_of_container": _OLD_USED,
}
