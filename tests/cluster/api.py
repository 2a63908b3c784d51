# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API by plain HTTP. A test asks often, and starting kubectl each time would take longer than the answer."""
import http.client
import json
import ssl


class ApiError(RuntimeError):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text[:400]}")
        self.status = status


class Api:
    def __init__(self, address: str, ca: str, token: str) -> None:
        self.address, self.token = address, token
        self.context = ssl.create_default_context(cafile=ca)
        self.connection: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, body=None, kind: str = "application/json") -> dict | str:
        """Returns the answer as JSON, or as text if it is not JSON. Keeps one connection and reconnects once if it is broken."""
        data = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        for attempt in (1, 2):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPSConnection(self.address, 6443, timeout=15, context=self.context)
                self.connection.request(method, path, data, headers)
                answer = self.connection.getresponse()
                text = answer.read().decode(errors="replace")
                break
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt == 2:
                    raise
        if answer.status >= 400:
            raise ApiError(answer.status, text)
        return json.loads(text) if text.startswith("{") else text

    def get(self, path: str):
        return self.call("GET", path)

    def pods(self, namespace: str = "default") -> list[dict]:
        return self.get(f"/api/v1/namespaces/{namespace}/pods")["items"]

    def pod(self, name: str, namespace: str = "default") -> dict | None:
        try:
            return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create_pod(self, pod: dict, namespace: str = "default") -> dict:
        return self.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)

    def delete_pod(self, name: str, namespace: str = "default", grace: int = 1) -> None:
        try:
            self.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds={grace}")
        except ApiError as error:
            if error.status != 404:
                raise

    def log(self, name: str, namespace: str = "default", container: str = "") -> str:
        answer = self.get(f"/api/v1/namespaces/{namespace}/pods/{name}/log" + (f"?container={container}" if container else ""))
        return answer if isinstance(answer, str) else json.dumps(answer)

    def events(self, namespace: str = "default") -> list[dict]:
        return self.get(f"/api/v1/namespaces/{namespace}/events")["items"]

    def node(self, name: str = "gpu-node") -> dict:
        return self.get(f"/api/v1/nodes/{name}")
