# SPDX-License-Identifier: Apache-2.0
"""`gantry scheduler`, asked as a kube-scheduler asks its extender."""
import json
import os
import subprocess
import urllib.error
import urllib.request

from agent_support import started, until
from api_stand_in import Api
from lane_support import Lane


class Scheduler:
    def __init__(self, lane: Lane, api: Api, name: str, *flags: str) -> None:
        self.lane, self.name, self.log = lane, name, lane.work / f"{name}.log"
        self.port = 12345 + len(started)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [lane.bin / "gantry", "scheduler", "--port", str(self.port), "--kubeconfig", api.kubeconfig(lane.work / "kubeconfig"),
                 "--identity", name, "--leader-elect-lease-duration", "6s", *(flags or ["--webhook=off"])], stdout=log, stderr=log, env=kept)
        started.append(self.process)

    def ask(self, path: str, body: dict | None = None, timeout: float = 30) -> tuple[int, str]:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data), timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ready(self) -> "Scheduler":
        if not until(lambda: self.ask("/readyz")[0] == 200, 60):
            self.lane.check(f"{self.name} is ready", False, self.log.read_text())
        return self

    def leads(self) -> bool:
        return bool(until(lambda: "\ngantry_scheduler_leader 1\n" in self.ask("/metrics")[1], 60))

    def filter(self, thing: dict, *names: str) -> dict:
        return json.loads(self.ask("/gpushare-scheduler/filter", {"Pod": thing, "NodeNames": list(names), "Nodes": None})[1])

    def place(self, thing: dict, where: str) -> str:
        """Filter and bind; "" or why not."""
        answer = self.filter(thing, where)
        if where not in (answer.get("NodeNames") or []):
            reasons = (answer.get("FailedNodes") or {}) | (answer.get("FailedAndUnresolvableNodes") or {})
            return reasons.get(where) or answer.get("Error") or str(answer)
        meta = thing["metadata"]
        binding = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": where}
        status, said = until(lambda: (got := self.ask("/gpushare-scheduler/bind", binding))[0] == 200 and got, 30) or (0, "no binding within 30 s")
        return "" if status == 200 else said

    def bind_once(self, name: str, where: str, timeout: float = 30) -> tuple[int, str]:
        return self.ask("/gpushare-scheduler/bind",
                        {"PodName": name, "PodNamespace": "team", "PodUID": f"uid-{name}", "Node": where}, timeout)

    def bind(self, name: str, where: str) -> bool:
        """As kube-scheduler does: again after a while, where it was told that it is not the moment."""
        return bool(until(lambda: self.bind_once(name, where)[0] == 200, 30))

    def used(self, where: str) -> list[int]:
        return [card["usedGPU"] for card in json.loads(self.ask(f"/gpushare-scheduler/inspect/{where}")[1])["nodes"][0]["devs"]]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)
