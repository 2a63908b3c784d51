// SPDX-License-Identifier: Apache-2.0
#include "node/why/node_steps.hpp"

#include "base/sys/shell_command.hpp"
#include "base/sys/unique_fd.hpp"
#include "cluster/explain/pod_steps.hpp"
#include "gpu/health/health_message.hpp"
#include "node/kubelet/checkpoint.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;

constexpr std::size_t kIdsShown = 16;

constexpr std::string_view kKubeletSocket = "kubelet.sock";

// Through the directory's descriptor, because a socket address has room for only 107 characters.
bool answers(int directory, const std::string& name) {
  const auto path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  const sys::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return false;
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(socket.get(), where, sizeof address) == 0 || errno == EAGAIN;
}

// Sockets of plugins in the kubelet's directory on which a process listens.
std::vector<std::string> listeners(const sys::Host& machine, const std::string& directory) {
  std::vector<std::string> found;
  const auto names = machine.list(directory);
  const auto opened = machine.open(directory, O_PATH | O_DIRECTORY);
  if (!names.ok() || !opened.ok()) return found;
  for (const auto& name : *names) {
    if (!name.ends_with(".sock") || name == kKubeletSocket) continue;
    if (answers(opened->get(), name)) found.push_back(name);
  }
  return found;
}

}  // namespace

Step registration_step(const sys::Host& machine, const std::string& directory,
                       const std::string& resource) {
  Step step{.id = "plugin.registration", .what = "A plugin is registered for it"};
  const auto plugins = listeners(machine, directory);
  const auto checkpoint = kubelet::read_checkpoint(machine.outside(directory));
  std::size_t known = 0;
  if (checkpoint.ok()) {
    const auto entry = checkpoint->devices.find(resource);
    known = entry == checkpoint->devices.end() ? 0 : entry->second.size();
  }
  step.read = fmt::format("the kubelet knows {} {}; {}", known, resource,
                          plugins.empty() ? "no plugin's socket answers"
                                          : fmt::format("{} answers", fmt::join(plugins, ", ")));
  if (!machine.exists(fmt::format("{}/{}", directory, kKubeletSocket))) {
    step.verdict = StepStatus::Failed;
    step.cause =
        fmt::format("{}/{} is missing: the kubelet accepts no plugins", directory, kKubeletSocket);
    step.remedy = sys::on_machine(machine, "sudo systemctl restart kubelet");
  } else if (plugins.empty()) {
    step.verdict = StepStatus::Failed;
    step.cause = "no device plugin runs on this node: no process listens in " + directory;
    step.remedy = "systemctl status gantry-agent, or kubectl get pods -A -o wide for its pod here";
  } else if (checkpoint.ok() && known == 0) {
    step.verdict = StepStatus::Failed;
    step.cause =
        fmt::format("a plugin runs, but it has not registered {} with the kubelet", resource);
    step.remedy = "journalctl -u gantry-agent, or kubectl logs of its pod here; gantry doctor";
  }
  return step;
}

Step allocation_step(const sys::Host& machine, const std::string& directory, json::Value pod) {
  Step step{.id = "kubelet.allocation", .what = "The kubelet gave it devices"};
  const auto checkpoint = kubelet::read_checkpoint(machine.outside(directory));
  if (!checkpoint.ok()) {
    step.verdict = StepStatus::Unknown;
    step.read = checkpoint.error().text();
    return step;
  }
  const auto uid = pod["metadata"]["uid"].string();
  for (const auto& holder : checkpoint->holders) {
    if (holder.pod.uid != uid) continue;
    // A share has many units of memory, and their ids say nothing: only their number is shown.
    const auto ids = holder.ids.size() > kIdsShown ? fmt::to_string(holder.ids.size())
                                                   : fmt::format("{}", fmt::join(holder.ids, " "));
    step.read += fmt::format("{}{}: {} of {}", step.read.empty() ? "" : ", ", holder.container, ids,
                             holder.resource);
  }
  if (!step.read.empty()) return step;
  step.verdict = StepStatus::Failed;
  step.read = "nothing in the kubelet's checkpoint";
  step.cause = "the kubelet admitted the pod before any plugin had offered the resource";
  step.remedy = "delete the pod and create it again";
  return step;
}

Step gpu_health_step(const sys::Host& machine, const std::string& directory, json::Value pod,
                     json::Value node) {
  Step step{.id = "device.health", .what = "Its GPUs are healthy", .read = "no problem is known"};
  const auto reported = explain::condition(node, "GPUsHealthy");
  const auto checkpoint = kubelet::read_checkpoint(machine.outside(directory));
  if (reported["status"].string() != "False" || !checkpoint.ok()) return step;
  const auto message = reported["message"].string().value_or("");
  for (const auto& holder : checkpoint->holders) {
    if (holder.pod.uid != pod["metadata"]["uid"].string()) continue;
    for (const auto& id : holder.ids) {
      // A replica has the health of its card.
      const auto problem = health::find_problem(message, id.substr(0, id.find("::")));
      if (!problem) continue;
      step.verdict = StepStatus::Failed;
      step.read = problem->text;
      step.cause = fmt::format("a GPU that container {} holds is not usable: {}", holder.container,
                               problem->text);
      step.remedy = fmt::format("on {}: {}", node["metadata"]["name"].string().value_or("the node"),
                                problem->remedy.empty() ? "gantry doctor" : problem->remedy);
      return step;
    }
  }
  return step;
}

}  // namespace gantry::why
