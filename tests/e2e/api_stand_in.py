# SPDX-License-Identifier: Apache-2.0
"""As much of an API server as a scheduler and a node's agent talk to, in this process, so that a test can hold an answer back, break a
connection, be away or restart it at a chosen moment. What a real one does with all this is tested in tests/cluster."""
import http.server
import json
import pathlib
import threading
import time
import urllib.parse
import uuid

KINDS = {"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "resourcequotas": "ResourceQuota", "configmaps": "ConfigMap", "leases": "Lease", "events": "Event",
         "secrets": "Secret", "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
         "validatingwebhookconfigurations": "ValidatingWebhookConfiguration"}


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


class Refused(Exception):
    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class Store:
    """Objects by kind and "namespace/name"; every change has a number and is told to those who watch."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 100
        self.objects: dict[str, dict[str, dict]] = {kind: {} for kind in KINDS}
        self.log: list[tuple[int, str, str, dict]] = []  # version, kind, ADDED..., object
        self.forgotten = 0  # versions up to this one cannot be watched from: 410

    def put(self, kind: str, thing: dict, event: str = "") -> dict:
        with self.changed:
            self.version += 1
            meta = thing["metadata"]
            meta["resourceVersion"] = str(self.version)
            meta.setdefault("uid", str(uuid.uuid4()))
            key = f"{meta.get('namespace', '')}/{meta['name']}"
            event = event or ("MODIFIED" if key in self.objects[kind] else "ADDED")
            if event == "DELETED":
                self.objects[kind].pop(key, None)
            else:
                self.objects[kind][key] = thing
            self.log.append((self.version, kind, event, json.loads(json.dumps(thing))))
            self.changed.notify_all()
            return thing

    def get(self, kind: str, key: str) -> dict:
        with self.changed:
            if key not in self.objects[kind]:
                raise Refused(404, "NotFound", f'{kind} "{key}" not found')
            return json.loads(json.dumps(self.objects[kind][key]))

    def bind(self, key: str, binding: dict) -> None:
        with self.changed:
            pod = self.get("pods", key)
            wanted = binding["metadata"].get("uid")
            if wanted and wanted != pod["metadata"]["uid"]:
                raise Refused(409, "Conflict", "the UID in the precondition does not match")
            if pod["spec"].get("nodeName"):
                raise Refused(409, "Conflict", f"pod {key} is already assigned to node {pod['spec']['nodeName']}")
            pod["spec"]["nodeName"] = binding["target"]["name"]
            pod["metadata"].setdefault("annotations", {}).update(binding["metadata"].get("annotations") or {})
            self.put("pods", pod)

    def forget(self) -> None:
        """No watch can continue from here: every client has to list again."""
        with self.changed:
            self.forgotten = self.version
            self.log.clear()
            self.changed.notify_all()


class Api:
    def __init__(self) -> None:
        self.store = Store()
        self.before_binding = lambda key: None  # called in the request's thread; may wait or raise
        self.after_binding = lambda key: None   # it is stored, the answer is not written yet
        self.protected: set[str] = set()        # pods that a budget keeps from being evicted
        self.evicted: list[str] = []
        self.lists_allowed = threading.Event()
        self.lists_allowed.set()
        self.read_only = False  # pods may not be patched
        self.forbidden: set[str] = set()  # kinds that every request is refused for
        self.gone_away = False
        self.fault = None  # called with the handler of each request; True: it has answered, or does not
        self.watch_epoch = 0
        self.requests: list[str] = []
        self.port = 0
        self.start()

    @property
    def away(self) -> bool:
        """It answers 503, and ends what is watched."""
        return self.gone_away

    @away.setter
    def away(self, is_so: bool) -> None:
        with self.store.changed:
            self.gone_away = is_so
            self.store.changed.notify_all()

    def set_fault(self, fault) -> None:
        """From now on, or none. Watches that are open end."""
        with self.store.changed:
            self.fault = fault
            self.watch_epoch += 1
            self.store.changed.notify_all()

    def start(self) -> None:
        api = self

        class Handler(_Handler):
            pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, client_address) -> None:
                """A client that was killed is what these tests are about."""
        Handler.api = api
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.stopping = False
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.server.stopping = True
        with self.store.changed:
            self.store.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, path: pathlib.Path) -> pathlib.Path:
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "here",
                                    "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
                                    "users": [{"name": "me", "user": {"token": "t"}}],
                                    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}]}))
        return path


class NodeApi(Api):
    """One with a single node, whose pods are known by their uid."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self.node_name = node
        self.store.put("nodes", {"metadata": {"name": node, "labels": {}, "annotations": {}}, "status": {"capacity": {}, "allocatable": {}}})

    @property
    def node(self) -> dict:
        return self.store.objects["nodes"][f"/{self.node_name}"]

    def pod(self, uid: str) -> dict:
        with self.store.changed:
            return next(pod for pod in self.store.objects["pods"].values() if pod["metadata"]["uid"] == uid)

    def set(self, pod: dict) -> None:
        self.store.put("pods", pod)

    def remove(self, uid: str) -> None:
        self.store.put("pods", self.pod(uid), "DELETED")

    def annotations(self, uid: str) -> dict:
        return dict(self.pod(uid)["metadata"].get("annotations", {}))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api

    def log_message(self, *_args) -> None:
        pass

    def answer(self, code: int, thing: dict) -> None:
        body = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_one(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.stopping:
            self.close_connection = True
            return
        self.api.requests.append(f"{method} {self.path}")
        fault = self.api.fault
        if fault is not None and fault(self):
            return
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        try:
            if self.api.away:
                raise Refused(503, "ServiceUnavailable", "away")
            kind, space, name, inner = self.split(url.path)
            if kind in self.api.forbidden:
                raise Refused(403, "Forbidden", f"{kind} is forbidden")
            if method == "GET" and not name and query.get("watch", "false") in ("1", "true"):
                self.watch(kind, int(query.get("resourceVersion") or 0), float(query.get("timeoutSeconds", 300)))
            elif method == "GET" and not name:
                self.answer(200, self.list(kind, query))
            elif method == "GET":
                self.answer(200, self.api.store.get(kind, f"{space}/{name}"))
            elif method == "POST" and inner == "binding":
                self.bind(f"{space}/{name}", json.loads(body))
            elif method == "POST" and inner == "eviction":
                self.answer(201, self.evict(f"{space}/{name}", json.loads(body)["deleteOptions"]))
            elif method in ("POST", "PUT"):
                self.answer(200 if method == "PUT" else 201, self.write(kind, space, method, json.loads(body)))
            elif method == "PATCH":
                self.answer(200, self.patch(kind, f"{space}/{name}", json.loads(body)))
            else:
                raise Refused(405, "MethodNotAllowed", self.path)
        except Refused as refused:
            self.answer(refused.code, {"kind": "Status", "status": "Failure", "code": refused.code, "reason": refused.reason,
                                       "message": str(refused)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    @staticmethod
    def split(path: str) -> tuple[str, str, str, str]:
        """/api/v1/namespaces/team/pods/a/binding -> pods, team, a, binding"""
        words = [urllib.parse.unquote(word) for word in path.strip("/").split("/")]
        words = words[2:] if words[0] == "api" else words[3:]
        space = ""
        if len(words) > 2 and words[0] == "namespaces":
            space, words = words[1], words[2:]
        if words[0] not in KINDS:
            raise Refused(404, "NotFound", f"no {words[0]} here")
        return (words[0], space, *(words[1:] + ["", ""])[:2])

    def list(self, kind: str, query: dict) -> dict:
        if not self.api.lists_allowed.wait(30):
            raise Refused(503, "ServiceUnavailable", "not now")
        store = self.api.store
        with store.changed:
            things = list(store.objects[kind].values())
            start, limit = int(query.get("continue") or 0), int(query.get("limit") or 10**9)
            meta = {"resourceVersion": str(store.version)}
            if start + limit < len(things):
                meta["continue"] = str(start + limit)
            return {"kind": KINDS[kind] + "List", "apiVersion": "v1", "metadata": meta, "items": things[start:start + limit]}

    def watch(self, kind: str, version: int, seconds: float) -> None:
        store, epoch = self.api.store, self.api.watch_epoch
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def tell(event: str, thing: dict) -> None:
            line = json.dumps({"type": event, "object": thing}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        while not self.server.stopping and not self.api.away and self.api.watch_epoch == epoch:
            with store.changed:
                gone = version < store.forgotten
                news = [(v, event, thing) for v, k, event, thing in store.log if k == kind and v > version]
                if not news and not gone:
                    if not store.changed.wait(min(seconds, 5)):
                        news = [(store.version, "BOOKMARK", {"kind": KINDS[kind], "metadata": {"resourceVersion": str(store.version)}})]
            if gone:
                tell("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
                break
            for v, event, thing in news:
                tell(event, thing)
                version = v
        self.close_connection = True

    def bind(self, key: str, binding: dict) -> None:
        self.api.before_binding(key)
        self.api.store.bind(key, binding)
        self.api.after_binding(key)
        self.answer(201, {"kind": "Status", "status": "Success"})

    def evict(self, key: str, options: dict) -> dict:
        """A pod that is evicted stays until the test takes it away."""
        store = self.api.store
        with store.changed:
            if key in self.api.protected:
                raise Refused(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
            pod = store.get("pods", key)
            if pod["metadata"]["uid"] != options["preconditions"]["uid"]:
                raise Refused(409, "Conflict", "the UID in the precondition does not match")
            if not options.get("dryRun"):
                by = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30))
                store.put("pods", merged(pod, {"metadata": {"deletionTimestamp": by}}))
                self.api.evicted.append(key)
        return {"kind": "Status", "status": "Success"}

    def write(self, kind: str, space: str, method: str, thing: dict) -> dict:
        store = self.api.store
        thing["metadata"].setdefault("namespace", space)
        with store.changed:
            old = store.objects[kind].get(f"{space}/{thing['metadata'].get('name')}")
            if method == "POST" and old:
                raise Refused(409, "AlreadyExists", "it is there already")
            if method == "PUT" and (not old or thing["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]):
                raise Refused(409, "Conflict", "the object has been modified")
            return store.put(kind, thing)

    def patch(self, kind: str, key: str, change: dict) -> dict:
        """A merge patch; as far as a strategic one is needed, webhooks by their names."""
        store = self.api.store
        if kind == "pods" and self.api.read_only:
            raise Refused(403, "Forbidden", "pods is forbidden")
        with store.changed:
            thing = store.get(kind, key)
            if change.get("metadata", {}).get("uid", thing["metadata"]["uid"]) != thing["metadata"]["uid"]:
                raise Refused(409, "Conflict", "the UID in the precondition does not match")
            webhooks = {hook["name"]: hook for hook in thing.get("webhooks", [])}
            for wanted in change.pop("webhooks", []):
                webhooks[wanted["name"]]["clientConfig"].update(wanted["clientConfig"])
            return store.put(kind, merged(thing, change))

    def do_PATCH(self) -> None:
        self.handle_one("PATCH")

    def do_GET(self) -> None:
        self.handle_one("GET")

    def do_POST(self) -> None:
        self.handle_one("POST")

    def do_PUT(self) -> None:
        self.handle_one("PUT")
