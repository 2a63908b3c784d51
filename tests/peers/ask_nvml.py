# SPDX-License-Identifier: Apache-2.0
"""What nvidia-ml-py sees, as JSON."""
import json

import pynvml as nvml

nvml.nvmlInit()
gpus = []
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    pci = nvml.nvmlDeviceGetPciInfo(gpu)
    mig = []
    try:
        if nvml.nvmlDeviceGetMigMode(gpu)[0]:
            for i in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
                try:
                    mig.append(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, i)))
                except nvml.NVMLError_NotFound:
                    pass
    except nvml.NVMLError_NotSupported:
        pass
    gpus.append({
        "uuid": nvml.nvmlDeviceGetUUID(gpu), "name": nvml.nvmlDeviceGetName(gpu),
        "memory": nvml.nvmlDeviceGetMemoryInfo(gpu).total, "bus": f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0",
        "minor": nvml.nvmlDeviceGetMinorNumber(gpu), "mig": sorted(mig),
    })
print(json.dumps(gpus))
