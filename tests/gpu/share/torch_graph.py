# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs under a gate that is shut most of the time: many captures, each beside a stream that keeps the GPU busy, and replays that
compute what eager execution computes."""
import json
import threading
import time

import torch

busy = True
begun = threading.Event()
taken = []  # PyTorch has 32 streams and hands them out again: no capture may use the busy one


def keep_busy():
    stream = torch.cuda.Stream()
    taken.append(stream.cuda_stream)
    big = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    with torch.cuda.stream(stream):
        while busy:
            for _ in range(20):
                big @ big
            stream.synchronize()
            begun.set()


def step(model, x):
    return model(x).relu().sum(dim=1)


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).cuda()
x = torch.zeros(64, 256, device="cuda")
inputs = [torch.randn(64, 256, device="cuda") for _ in range(5)]
with torch.no_grad():
    for _ in range(3):
        step(model, x)
    torch.cuda.synchronize()
    thread = threading.Thread(target=keep_busy, daemon=True)  # an error here must end the program
    thread.start()
    begun.wait(60)  # a thread's first use of the libraries may wait for the whole device, which ends captures
    start, captures, wrong = time.time(), 0, 0
    while captures < 5 or (time.time() - start < 2 and captures < 40):
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        if side.cuda_stream in taken:
            side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            y = step(model, x)
        captures += 1
        for one in inputs:
            x.copy_(one)
            graph.replay()
            wrong += not torch.allclose(y, step(model, one), atol=1e-3, rtol=1e-3)
    busy = False
    thread.join()
print(json.dumps({"captures": captures, "replays": captures * len(inputs), "wrong": wrong, "seconds": time.time() - start}), flush=True)
