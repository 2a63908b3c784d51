# SPDX-License-Identifier: Apache-2.0
"""As much of CRI (runtime.v1) as the lanes need, spoken to an engine's socket as a kubelet does. Messages are written and read by field
number, so that no generated code is needed: a message is a list of (number, value), where a value is a number, a text or a message."""
import pathlib
import time

CONTAINER, NODE = 1, 2  # NamespaceMode: its own, the host's
RUNNING, EXITED = 1, 2  # ContainerState


def varint(number: int) -> bytes:
    groups = []
    while True:
        groups.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(groups)


def encode(message: list) -> bytes:
    parts = []
    for number, value in message:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
            continue
        data = value.encode() if isinstance(value, str) else encode(value)
        parts.append(varint(number << 3 | 2) + varint(len(data)) + data)
    return b"".join(parts)


def decode(data: bytes) -> dict:
    """The fields of a message by number. Where a field occurs several times, the last one counts."""
    fields, at = {}, 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
            continue
        if key & 7 != 2:
            raise ValueError(f"a field of wire type {key & 7}")
        size = number()
        fields[key >> 3] = data[at:at + size]
        at += size
    return fields


def pairs(field: int, entries: dict[str, str]) -> list:
    """A map, or a list of messages with a key and a value."""
    return [(field, [(1, key), (2, value)]) for key, value in entries.items()]


class Cri:
    def __init__(self, socket: pathlib.Path) -> None:
        import grpc  # here, because the rest does not need it
        self.channel = grpc.insecure_channel(f"unix:{socket}")
        self.count = 0

    def call(self, method: str, message: list, seconds: float = 60) -> dict:
        return decode(self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(encode(message), timeout=seconds))

    def version(self) -> str:
        answer = self.call("Version", [(1, "v1")])
        return f"{answer[2].decode()} {answer[3].decode()}"

    def run(self, image: str, argv: list[str], logs: pathlib.Path, *, handler: str = "", env: dict[str, str] | None = None,
            devices: tuple[str, ...] = (), annotations: dict[str, str] | None = None, user: int = 0) -> tuple[int, str]:
        """Runs one container in a sandbox of its own and returns its exit status and output. `devices` are CDI names, as a kubelet sends them."""
        self.count += 1
        name = f"lane-{self.count}"
        # As a kubelet asks by default: without processes that are shared, the sandbox needs no container of its own.
        namespaces = [(1, NODE), (2, CONTAINER)]
        sandbox = [(1, [(1, name), (2, f"uid-{name}"), (3, "default")]), (3, str(logs)), (8, [(2, [(1, namespaces)])])]
        identity = self.call("RunPodSandbox", [(1, sandbox), (2, handler)])[1].decode()
        try:
            container = [(1, [(1, "main")]), (2, [(1, image), (18, image)]), *((3, word) for word in argv), *pairs(6, env or {}), *pairs(10, annotations or {}),
                         (11, f"{name}.log"), (15, [(2, [(3, namespaces), (5, [(1, user)])])]), *((17, [(1, device)]) for device in devices)]
            created = self.call("CreateContainer", [(1, identity), (2, container), (3, sandbox)])[1].decode()
            self.call("StartContainer", [(1, created)])
            status = self.ended(created)
            return status, said(logs / f"{name}.log")
        finally:
            self.call("StopPodSandbox", [(1, identity)])
            self.call("RemovePodSandbox", [(1, identity)])

    def ended(self, container: str) -> int:
        until = time.monotonic() + 60
        while True:
            status = decode(self.call("ContainerStatus", [(1, container)])[1])
            if status.get(3, 0) == EXITED:
                return status.get(7, 0)
            if time.monotonic() > until:
                raise TimeoutError(f"container {container} still runs after a minute")
            time.sleep(0.05)


def said(log: pathlib.Path) -> str:
    """The output in a log of the kubelet's form: time, stream, F or P, text."""
    return "".join(line.split(" ", 3)[3] + "\n" for line in log.read_text(errors="replace").splitlines() if line.count(" ") >= 3)
