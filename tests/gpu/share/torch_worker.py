# SPDX-License-Identifier: Apache-2.0
"""A PyTorch tenant that does as it is told, a command a line, and answers with JSON:
matmul SIZE SECONDS -> {"tflops"}, mlp SECONDS -> {"steps"}: a second each, never waiting but at the end.
All of them use the same few processors, so that those which take turns can be compared."""
import json
import os
import sys
import time

import torch


def matmul(size, seconds):
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    for _ in range(3):
        torch.matmul(a, b, out=out)
    torch.cuda.synchronize()
    done, start = 0, time.perf_counter()
    each = max(1, int(2e12 / size**3))  # a synchronise each few milliseconds keeps the clock honest
    while time.perf_counter() - start < seconds:
        for _ in range(each):
            torch.matmul(a, b, out=out)
        done += each
        torch.cuda.synchronize()
    return {"tflops": 2 * size**3 * done / (time.perf_counter() - start) / 1e12}


def mlp(seconds, made={}):
    if not made:
        torch.manual_seed(0)
        model = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())], torch.nn.Linear(512, 10)).cuda()
        made |= {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.01), "x": torch.randn(256, 512, device="cuda"),
                 "y": torch.randint(0, 10, (256,), device="cuda")}
    model, optimizer, x, y = made["model"], made["optimizer"], made["x"], made["y"]

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        step()
        done += 1
    torch.cuda.synchronize()
    return {"steps": done / (time.perf_counter() - start)}


torch.zeros(1, device="cuda")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[2:6] or os.sched_getaffinity(0))
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    word, *values = line.split()
    answer = matmul(int(values[0]), float(values[1])) if word == "matmul" else mlp(float(values[0]))
    print(json.dumps(answer), flush=True)
