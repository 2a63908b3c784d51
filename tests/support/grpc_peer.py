#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A real gRPC, for tests of ours: grpc_peer.py client PATH | grpc_peer.py server PATH. Messages are bytes."""
import sys
import threading
import time

import grpc

LIMITS = [("grpc.max_receive_message_length", 8 << 20), ("grpc.max_send_message_length", 8 << 20)]


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


def client(path):
    options = LIMITS + [("grpc.default_authority", "%2Fvar%2Flib%2Fa.sock")]
    with grpc.insecure_channel(f"unix:{path}", options=options) as channel:
        say = channel.unary_unary("/t.Echo/Say")
        check("hello", say(b"hello", timeout=5), b"you said hello")
        large = b"x" * ((4 << 20) - 16)
        check("large", len(say(large, timeout=20)), len(large) + 9)
        fail = channel.unary_unary("/t.Echo/Fail")
        wanted = (grpc.StatusCode.FAILED_PRECONDITION, "50% lost\nä")
        check("error", code_of(lambda: fail("50% lost\nä".encode(), timeout=5)), wanted)
        sing = channel.unary_unary("/t.Echo/Sing")
        check("unknown", code_of(lambda: sing(b"", timeout=5))[0], grpc.StatusCode.UNIMPLEMENTED)
        check("too large", code_of(lambda: say(b"x" * (5 << 20), timeout=20))[0], grpc.StatusCode.RESOURCE_EXHAUSTED)
        check("after", say(b"", timeout=5), b"you said ")
        keep = channel.unary_unary("/t.Echo/Keep")
        check("deadline", code_of(lambda: keep(b"", timeout=0.1))[0], grpc.StatusCode.DEADLINE_EXCEEDED)
        count = channel.unary_stream("/t.Echo/Count")
        check("stream", list(count(b"", timeout=5)), [b"one", b"two", b"x" * 300000, b""])
        threads = [threading.Thread(target=lambda: check("many", say(b"m", timeout=10), b"you said m")) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("all as wanted")


class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        return {
            "/t.Echo/Say": unary(lambda request, context: b"you said " + request),
            "/t.Echo/Fail": unary(lambda request, context: context.abort(grpc.StatusCode.ABORTED, request.decode())),
            "/t.Echo/Slow": unary(lambda request, context: time.sleep(1) or b""),
            "/t.Echo/Count": stream(lambda request, context: iter([b"one", b"two", b"x" * 300000, b""])),
        }.get(details.method)


def server(path):
    from concurrent import futures

    serving = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Echo()], options=LIMITS)
    serving.add_insecure_port(f"unix:{path}")
    serving.start()
    print("ready", flush=True)
    sys.stdin.read()  # until the process that started us ends
    serving.stop(None)


{"client": client, "server": server}[sys.argv[1]](sys.argv[2])
