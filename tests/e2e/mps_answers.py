#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what nvidia-cuda-mps-control answers and what its clients see, on a machine with one GPU, real or simulated. Process ids,
the GPU's UUID and the width of columns are replaced, so that outputs of two machines can be compared:

    CUDA_MPS_PIPE_DIRECTORY=/tmp/pipes CUDA_MPS_LOG_DIRECTORY=/tmp/logs tests/e2e/mps_answers.py

The output of a real machine is tests/golden/mps-control.txt."""
import ctypes
import os
import re
import subprocess
import sys
import time

names: dict[int, str] = {}


def masked(text: str) -> str:
    for pid, name in names.items():
        text = re.sub(rf"\b{pid}\b", name, text)
    text = text.replace(sys.executable, "python3")
    text = re.sub(r"GPU-[0-9a-f-]{18}", "GPU-UUID", text)
    text = re.sub(r"(GPU-UUID +)\d+", r"\1NAMESPACE", text)
    return "\n".join(re.sub(" +", " ", line).rstrip() for line in text.splitlines())


def control(commands: str) -> str:
    done = subprocess.run(["nvidia-cuda-mps-control"], input=commands + "\n", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout + (f"[exit status {done.returncode}]\n" if done.returncode else "")


def ask(*lines: str) -> None:
    for line in lines:
        print(masked(f"$ {line}\n{control(line)}"), flush=True)


def new_server(name: str) -> int:
    pid = int(control("get_server_list"))
    names[pid] = name
    return pid


class Client:
    """A process that allocates so many GiB one after the other, then waits until it is asked to end."""

    def __init__(self, name: str, *gib: int, **env: str) -> None:
        self.name = name
        self.process = subprocess.Popen([sys.executable, __file__, "client", *map(str, gib)], env={**os.environ, **env},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        names[self.process.pid] = name
        self.show()

    def show(self) -> None:
        print(f"{self.name}: {self.process.stdout.readline().strip()}", flush=True)

    def end(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.show()
        self.process.wait()
        del names[self.process.pid]


def as_client(gib: list[int]) -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    number, free, total, context, memory = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_void_p()
    seen = {"init": cuda.cuInit(0)}
    for attribute, what in ((16, "multiprocessors"), (133, "mps"), (20, "mode")):
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, 0)
        seen[what] = number.value
    cuda.cuDeviceGetExecAffinitySupport(ctypes.byref(number), 0, 0)
    seen["affinity"] = number.value
    seen["context"] = cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    seen["info"] = cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    seen["free_gib"], seen["total_mib"] = free.value >> 30, total.value >> 20
    seen["allocations"] = [cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size << 30)) for size in gib]
    print(seen, flush=True)
    sys.stdin.readline()
    print({"synchronize": cuda.cuCtxSynchronize()}, flush=True)


def show_processes() -> None:
    table = subprocess.run(["nvidia-smi"], text=True, stdout=subprocess.PIPE).stdout
    for line in sorted(masked(row) for row in table.splitlines() if "mps-server" in row or "python3" in row):
        print(re.sub(r" \d+MiB", "", re.sub(r"\S*python3", "python3", line)))
    apps = subprocess.run(["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"], text=True, stdout=subprocess.PIPE).stdout
    print(masked(apps))


def compute_mode(mode: str) -> None:
    subprocess.run(["nvidia-smi", "-c", mode], stdout=subprocess.DEVNULL, check=True)


def without_clients() -> int:
    ask("get_server_list")
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
    ask("get_server_list", "get_default_active_thread_percentage", "get_default_client_priority",
        "get_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 0 x",
        "get_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 0 8G", "get_default_device_pinned_mem_limit 0",
        "set_default_active_thread_percentage 300", "set_default_active_thread_percentage x", "set_default_active_thread_percentage 30",
        "nonsense", "get_server_status 1", "get_client_list", "get_client_list 1", "ps", "get_device_client_list", "terminate_client 1 2",
        "shutdown_server 1", "start_server -uid", f"start_server -uid {os.geteuid()}")
    time.sleep(2)
    server = new_server("SERVER")
    ask("get_server_list", f"get_server_status {server}", f"get_client_list {server}", "ps", "get_device_client_list",
        f"get_active_thread_percentage {server}", f"get_device_pinned_mem_limit {server} 0", f"terminate_client {server} 2",
        "get_default_active_thread_percentage\nget_server_list")
    return server


def with_clients(server: int) -> None:
    first = Client("CLIENT1", 3, 4, 2)
    second = Client("CLIENT2", 3, 4, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=4G", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10")
    show_processes()
    ask(f"get_client_list {server}", "ps", "get_device_client_list", f"set_active_thread_percentage {server} 50",
        f"set_device_pinned_mem_limit {server} 0 6G", f"get_device_pinned_mem_limit {server} 0",
        f"terminate_client {server} {first.process.pid}")
    first.end()
    second.end()
    loose = Client("CLIENT3", 5, 4, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=16G", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="90")
    loose.end()


def alone_on_the_gpu(server: int) -> None:
    compute_mode("EXCLUSIVE_PROCESS")
    client = Client("CLIENT4", 3, 4, 2)
    Client("OUTSIDER", 1, CUDA_MPS_PIPE_DIRECTORY="/nonexistent").end()
    ask(f"shutdown_server {server}", "get_server_list")
    client.end()
    time.sleep(4)
    ask("get_server_list")


def forced_end() -> None:
    client = Client("CLIENT5")
    server = new_server("SERVER2")
    ask(f"get_client_list {server}", f"shutdown_server {server} -f")
    time.sleep(2)
    ask("get_server_list")
    client.end()
    ask("quit", "get_server_list")
    compute_mode("DEFAULT")


if sys.argv[1:2] == ["client"]:
    as_client([int(size) for size in sys.argv[2:]])
else:
    first_server = without_clients()
    with_clients(first_server)
    alone_on_the_gpu(first_server)
    forced_end()
