# SPDX-License-Identifier: Apache-2.0
"""A DNS server on loopback, by UDP and TCP, that knows a few names and keeps what it was asked."""
import socketserver
import struct
import threading

NO_SUCH_NAME = 3
TRUNCATED = 0x0200


def question_of(query: bytes) -> tuple[str, int, bytes]:
    """The name, the type and the bytes of the question."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1: at + 1 + query[at]].decode())
        at += 1 + query[at]
    return ".".join(labels), struct.unpack_from(">H", query, at + 1)[0], query[12: at + 5]


class NameServer:
    def __init__(self, names: dict[str, str], only_by_tcp: set[str] = frozenset(), address: str = "127.0.0.1") -> None:
        self.names, self.only_by_tcp = names, only_by_tcp
        self.asked: list[str] = []  # of the questions for IPv4
        outer = self

        class Datagram(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                query, socket = self.request
                socket.sendto(outer.response(query, by_tcp=False), self.client_address)

        class Stream(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while len(head := self.rfile.read(2)) == 2:
                    response = outer.response(self.rfile.read(struct.unpack(">H", head)[0]), by_tcp=True)
                    self.wfile.write(struct.pack(">H", len(response)) + response)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        for kind, handler in ((socketserver.ThreadingUDPServer, Datagram), (socketserver.ThreadingTCPServer, Stream)):
            server = kind((address, 53), handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def response(self, query: bytes, by_tcp: bool) -> bytes:
        name, record_type, question = question_of(query)
        if record_type == 1:
            self.asked.append(name)
        flags = 0x8180 | (0 if name in self.names else NO_SUCH_NAME)
        if name in self.only_by_tcp and not by_tcp:
            flags |= TRUNCATED
        records = b""
        if record_type == 1 and flags == 0x8180:
            address = bytes(int(part) for part in self.names[name].split("."))
            records = struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + address
        return query[:2] + struct.pack(">HHHHH", flags, 1, 1 if records else 0, 0, 0) + question + records
