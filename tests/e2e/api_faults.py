# SPDX-License-Identifier: Apache-2.0
"""Ways in which an exhausted API server answers, for Api.set_fault. Each is called with the handler of a request."""
import json
import threading


def is_watch(handler) -> bool:
    return "watch=true" in handler.path


def refusing(code: int, reason: str, **headers: str):
    def fault(handler) -> bool:
        body = json.dumps({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "the server is exhausted"}).encode()
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True
    return fault


class Silent:
    """Reads the request and says nothing until it is over, then closes. `drip`: says a little now and then."""

    def __init__(self, drip: bool = False) -> None:
        self.over, self.drip = threading.Event(), drip

    def __call__(self, handler) -> bool:
        handler.close_connection = True
        try:
            if self.drip:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{")
            while not self.over.wait(0.1):
                if self.drip:
                    handler.wfile.write(b" ")
        except OSError:
            pass  # the client had enough
        return True


def half_a_body(handler) -> bool:
    handler.close_connection = True
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"kind":"PodList","items":[{"metadata":')
    return True


def start_watch(handler) -> None:
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()


def short_watches(handler) -> bool:
    """Each watch ends after one event."""
    if not is_watch(handler):
        return False
    start_watch(handler)
    version = str(handler.api.store.version)
    handler.wfile.write(json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}).encode() + b"\n")
    return True


def gone(handler) -> bool:
    """Lists are answered, but no version can be watched."""
    if not is_watch(handler):
        return False
    start_watch(handler)
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    handler.wfile.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
    return True


def endless_line(handler) -> bool:
    """A watch whose first event never ends; other answers are as large as an answer may be, and larger."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"items\":[\"")
    try:
        for _ in range(1024):
            handler.wfile.write(b"x" * 65536)
    except OSError:
        pass  # the client had enough
    return True
