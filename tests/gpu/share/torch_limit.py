# SPDX-License-Identifier: Apache-2.0
"""PyTorch up to its limit: what it sees, what it says when there is no more, and that it goes on afterwards. The allocator is chosen by
PYTORCH_CUDA_ALLOC_CONF."""
import json
import sys
import time

import torch

# Contexts and modules count as the host sees them, a moment later: first all of them, then the limit.
torch.empty(1, device="cuda")
torch.cuda.synchronize()
time.sleep(0.6)
free, total = torch.cuda.mem_get_info()
said = {"free": free, "total": total, "total_memory": torch.cuda.get_device_properties(0).total_memory, "backend": torch.cuda.get_allocator_backend()}
blocks, granted, piece = [], 0, 256 << 20
errors = []
while piece >= 2 << 20:
    try:
        blocks.append(torch.empty(piece, dtype=torch.uint8, device="cuda"))
        granted += piece
    except torch.cuda.OutOfMemoryError as refused:
        errors.append(str(refused).splitlines()[0])
        piece //= 2
    except Exception as other:  # anything else is what this looks for
        errors.append(f"WRONG {type(other).__name__}: {other}")
        break
said |= {"granted": granted, "refusals": len(errors), "wrong": [e for e in errors if e.startswith("WRONG")], "said": errors[-1] if errors else ""}
said["free_full"] = torch.cuda.mem_get_info()[0]
print(json.dumps(said), flush=True)
sys.stdin.readline()
del blocks
torch.cuda.empty_cache()
a = torch.ones(1024, 1024, device="cuda")
print(json.dumps({"after": (a @ a)[0, 0].item(), "again": torch.empty(granted // 2, dtype=torch.uint8, device="cuda").numel()}), flush=True)
