// SPDX-License-Identifier: Apache-2.0
// Reads the reports of the kubelet and the engine about a pod that has a node.
#include "base/core/text.hpp"
#include "cluster/explain/pod_steps.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace gantry::explain {
namespace {

struct StartError {
  std::string who;  // "container main", "the sandbox"
  std::string reason;
  std::string message;
};

struct KnownEngineError {
  std::string_view part;  // of the engine's message
  std::string_view cause;
  std::string_view remedy;
};

constexpr std::array<KnownEngineError, 9> kKnownEngineErrors{{
    {"unresolvable CDI",
     "the engine cannot find the CDI device that it must inject: its specification is missing, or "
     "two files have the same device",
     "on the node: gantry doctor --only 'cdi.*'; sudo gantry cdi refresh"},
    {"CDI device injection failed", "the engine could not inject the CDI device",
     "on the node: gantry doctor --only 'cdi.*'; sudo gantry cdi refresh"},
    {"no runtime for", "the engine has no runtime with the name in the pod's RuntimeClass",
     "on the node: sudo gantry runtime configure --runtime=containerd && sudo systemctl restart "
     "containerd; with CDI no runtimeClassName is needed"},
    {"nvidia-container-cli", "an OCI hook of the engine failed",
     "on the node: gantry doctor; with CDI no hook is needed"},
    {"nvidia-container-runtime-hook", "an OCI hook of the engine failed",
     "on the node: gantry doctor; with CDI no hook is needed"},
    {"PreStartContainer", "the device plugin did not answer when the container had to start",
     "on the node: systemctl status gantry-agent, or kubectl logs of the agent's pod there; the "
     "kubelet tries again"},
    {"device plugin", "the device plugin did not answer when the container had to start",
     "on the node: systemctl status gantry-agent, or kubectl logs of the agent's pod there; the "
     "kubelet tries again"},
    {"no space left on device", "the node's disk is full", "on the node: df -h"},
    {"failed to pull", "the image cannot be pulled",
     "kubectl describe pod shows the registry's error"},
}};

bool is_fine(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

std::optional<StartError> waiting_in(json::Value pod) {
  for (const auto* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const auto status : pod["status"][list]) {
      const auto waiting = status["state"]["waiting"];
      const auto reason = waiting["reason"].string().value_or("");
      if (is_fine(reason)) continue;
      auto message = waiting["message"].string().value_or("");
      const auto ended = status["lastState"]["terminated"]["exitCode"].i64();
      if (reason == "CrashLoopBackOff" && ended)
        message = fmt::format("its program exited with status {}", *ended);
      return StartError{"container " + status["name"].string().value_or(""), reason, message};
    }
  }
  return std::nullopt;
}

// A container that could not be started and is not tried again stays "Error" or "StartError", with
// the runtime's message.
std::optional<StartError> failed_in(json::Value pod) {
  for (const auto* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const auto status : pod["status"][list]) {
      const auto ended = status["state"]["terminated"];
      const auto reason = ended["reason"].string().value_or("");
      if (reason != "StartError" && reason != "ContainerCannotRun") continue;
      return StartError{"container " + status["name"].string().value_or(""), reason,
                        ended["message"].string().value_or("")};
    }
  }
  return std::nullopt;
}

// Until its sandbox exists, a pod's status is ContainerCreating; only events say why.
std::optional<StartError> event_in(json::Value pod, json::Value events) {
  if (pod["status"]["phase"].string() != "Pending") return std::nullopt;
  std::optional<StartError> last;
  for (const auto event : events["items"]) {
    const auto reason = event["reason"].string().value_or("");
    if (event["type"].string() != "Warning" || reason == "FailedScheduling") continue;
    last = StartError{"the pod", reason, event["message"].string().value_or("")};
  }
  return last;
}

}  // namespace

Step admission_step(json::Value pod) {
  Step step{.id = "kubelet.admission", .what = "The kubelet admitted it"};
  const auto reason = pod["status"]["reason"].string().value_or("");
  const auto message = pod["status"]["message"].string().value_or("");
  step.read = pod["status"]["phase"].string().value_or("");
  if (reason != "UnexpectedAdmissionError" && reason != "TopologyAffinityError" &&
      !reason.starts_with("OutOfnvidia.com/"))
    return step;
  step.verdict = StepStatus::Failed;
  step.read = fmt::format("{}: {}", reason, message);
  step.cause = "the kubelet could not give it the devices: " + message;
  step.remedy =
      "delete the pod and create it again: the kubelet never retries a pod that it rejected";
  if (contains(message, "unhealthy") || contains(message, "no healthy"))
    step.remedy = "gantry doctor on the node; delete the pod when the GPUs are healthy again";
  if (reason == "TopologyAffinityError")
    step.remedy =
        "ask for GPUs and processors of one NUMA node, or set topologyManagerPolicy: best-effort "
        "in the kubelet's configuration; gantry doctor --only kubelet.topology";
  return step;
}

Step engine_step(json::Value pod, json::Value events) {
  Step step{.id = "engine", .what = "The engine started its containers", .read = "no error"};
  auto complaint = waiting_in(pod);
  if (!complaint) complaint = failed_in(pod);
  if (!complaint) complaint = event_in(pod, events);
  if (!complaint) return step;
  step.verdict = StepStatus::Failed;
  step.read = fmt::format("{}: {}: {}", complaint->who, complaint->reason, complaint->message);
  step.cause = fmt::format("{}: {}", complaint->who, complaint->reason);
  step.remedy = "kubectl describe pod shows the engine's error; gantry doctor on the node";
  if (complaint->reason == "CrashLoopBackOff") {
    step.id = "container.exit";
    step.what = "Its program runs";
    step.cause = fmt::format("{}: {}, repeatedly", complaint->who, complaint->message);
    step.remedy = "kubectl logs --previous shows its last output";
    return step;
  }
  for (const auto& known : kKnownEngineErrors) {
    if (!contains(complaint->message, known.part)) continue;
    step.cause = known.cause;
    step.remedy = known.remedy;
    return step;
  }
  return step;
}

}  // namespace gantry::explain
