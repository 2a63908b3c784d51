# SPDX-License-Identifier: Apache-2.0
"""An API server for lanes without a cluster: pods of one node and the Node itself, with lists, watches and merge patches. It knows no rights
but one switch, keeps everything in memory, and can be away."""
import json
import queue
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def merged(old, new):
    """RFC 7386."""
    if not isinstance(new, dict):
        return new
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class ApiServer:
    def __init__(self, node: str) -> None:
        self.lock = threading.RLock()
        self.version = 100
        self.pods: dict[str, dict] = {}  # by uid
        self.node = {"metadata": {"name": node, "labels": {}, "annotations": {}}, "status": {"capacity": {}, "allocatable": {}}}
        self.watchers: list[queue.Queue] = []
        self.away = False
        self.read_only = False  # pods may not be patched
        self.said: list[str] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status: int, body) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def refuse(self, status: int, why: str) -> None:
                self.answer(status, {"kind": "Status", "status": "Failure", "message": why, "code": status})

            def do_GET(self) -> None:
                url = urllib.parse.urlparse(self.path)
                asked = urllib.parse.parse_qs(url.query)
                if api.away:
                    return self.refuse(503, "away")
                if url.path == "/api/v1/pods" and asked.get("watch", ["false"])[0] in ("1", "true"):
                    return self.watch(int(asked.get("resourceVersion", ["0"])[0] or 0))
                with api.lock:
                    if url.path == "/api/v1/pods":
                        return self.answer(200, {"kind": "PodList", "metadata": {"resourceVersion": str(api.version)}, "items": list(api.pods.values())})
                    if url.path == "/api/v1/nodes":
                        return self.answer(200, {"kind": "NodeList", "metadata": {"resourceVersion": str(api.version)}, "items": [api.node]})
                    if url.path == f"/api/v1/nodes/{node}":
                        return self.answer(200, api.node)
                self.refuse(404, "no such thing")

            def watch(self, since: int) -> None:
                events = queue.Queue()
                with api.lock:
                    for pod in api.pods.values():
                        if int(pod["metadata"]["resourceVersion"]) > since:
                            events.put({"type": "MODIFIED", "object": pod})
                    api.watchers.append(events)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    while not api.away:
                        try:
                            line = json.dumps(events.get(timeout=0.2)).encode() + b"\n"
                        except queue.Empty:
                            continue
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    pass
                self.close_connection = True
                with api.lock:
                    api.watchers.remove(events)

            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if api.away:
                    return self.refuse(503, "away")
                with api.lock:
                    api.said.append(f"PATCH {self.path}")
                    if self.path.split("?")[0] in (f"/api/v1/nodes/{node}", f"/api/v1/nodes/{node}/status"):
                        api.node = merged(api.node, body)
                        return self.answer(200, api.node)
                    for uid, pod in api.pods.items():
                        if self.path.split("?")[0] != f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}":
                            continue
                        if api.read_only:
                            return self.refuse(403, "pods is forbidden")
                        if body["metadata"].get("uid", uid) != uid:
                            return self.refuse(409, "another uid")
                        api.set(merged(pod, body))
                        return self.answer(200, api.pods[uid])
                self.refuse(404, "no such thing")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(201, {})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # agents are killed while they ask
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self, path) -> str:
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server.server_address[1]}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return str(path)

    def set(self, pod: dict) -> None:
        with self.lock:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            self.pods[pod["metadata"]["uid"]] = pod
            self.tell("MODIFIED", pod)

    def remove(self, uid: str) -> None:
        with self.lock:
            self.version += 1
            pod = self.pods.pop(uid)
            pod["metadata"]["resourceVersion"] = str(self.version)
            self.tell("DELETED", pod)

    def tell(self, kind: str, pod: dict) -> None:
        for events in [] if self.away else self.watchers:
            events.put({"type": kind, "object": json.loads(json.dumps(pod))})

    def annotations(self, uid: str) -> dict:
        with self.lock:
            return dict(self.pods[uid]["metadata"].get("annotations", {}))
