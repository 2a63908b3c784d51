// SPDX-License-Identifier: Apache-2.0
#include "node/why/container_steps.hpp"

#include "base/core/text.hpp"
#include "container/image/frameworks.hpp"
#include "node/why/container_steps_internal.hpp"
#include "node/why/software_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using image::variable;

constexpr std::string_view kHowToAsk =
    "Kubernetes: resources: {limits: {nvidia.com/gpu: 1}}; docker and podman: --device "
    "nvidia.com/gpu=all";

bool has_node(const ContainerView& inside, std::string_view name) {
  return std::find(inside.nodes.begin(), inside.nodes.end(), name) != inside.nodes.end();
}

std::vector<std::string> gpu_nodes(const ContainerView& inside) {
  std::vector<std::string> found;
  for (const auto& name : inside.nodes) {
    if (name.size() > 6 && name.starts_with("nvidia") && parse_u64(name.substr(6)))
      found.push_back("/dev/" + name);
  }
  return found;
}

void explain_no_node(Step& step, const ContainerView& inside) {
  step.verdict = StepStatus::Failed;
  step.remedy = kHowToAsk;
  const auto visible = variable(inside.environment, "NVIDIA_VISIBLE_DEVICES");
  step.read = fmt::format("no /dev/nvidia[0-9], NVIDIA_VISIBLE_DEVICES{}",
                          visible ? "=" + *visible : std::string(" not set"));
  if (!visible) {
    step.cause =
        "the container was started without a GPU: no CDI device was requested, and "
        "NVIDIA_VISIBLE_DEVICES, which NVIDIA's runtime reads, is not set";
  } else if (visible->empty() || *visible == "void" || *visible == "none") {
    step.cause =
        fmt::format("NVIDIA_VISIBLE_DEVICES={} says that the container wants no GPU", *visible);
    step.remedy = "set it to all or to the numbers of the GPUs, or ask for GPUs with " +
                  std::string(kHowToAsk);
  } else {
    step.cause = fmt::format(
        "NVIDIA_VISIBLE_DEVICES={} asks for GPUs, but the runtime that started the container "
        "ignores it, and no CDI device was requested",
        *visible);
  }
}

Step nodes_link(const ContainerView& inside) {
  Step step{.id = "container.nodes", .what = "It has device nodes"};
  const auto gpus = gpu_nodes(inside);
  step.read = fmt::format("{}", fmt::join(gpus, " "));
  if (gpus.empty() && has_node(inside, "dxg")) {
    step.read = "/dev/dxg (WSL)";
  } else if (gpus.empty()) {
    explain_no_node(step, inside);
  } else if (!has_node(inside, "nvidiactl") || !has_node(inside, "nvidia-uvm")) {
    const auto* missing = has_node(inside, "nvidiactl") ? "/dev/nvidia-uvm" : "/dev/nvidiactl";
    step.verdict = StepStatus::Failed;
    step.cause = fmt::format("{} is missing, and without it CUDA does not start", missing);
    step.remedy =
        "on the node: sudo nvidia-modprobe -c 0 -u; sudo gantry cdi refresh; then start the "
        "container again";
  }
  return step;
}

// CUDA counts the GPUs of the list up to the first invalid entry.
std::optional<Step> visible_link(const ContainerView& inside) {
  const auto value = variable(inside.environment, "CUDA_VISIBLE_DEVICES");
  if (!value) return std::nullopt;
  Step step{.id = "container.cuda-visible",
            .what = "CUDA may use them",
            .read = "CUDA_VISIBLE_DEVICES=" + *value};
  const auto first = trim(std::string_view(*value).substr(0, value->find(',')));
  const auto number = parse_u64(first);
  const bool name = first.starts_with("GPU-") || first.starts_with("MIG-");
  const auto count = gpu_nodes(inside).size();
  if (name || (number && (count == 0 || *number < count))) return step;
  step.verdict = StepStatus::Failed;
  step.cause =
      number ? fmt::format(
                   "CUDA_VISIBLE_DEVICES={} names GPU {}, but the container has {}, counted from 0",
                   *value, *number, count)
             : fmt::format("CUDA_VISIBLE_DEVICES={} hides every GPU from CUDA", *value);
  step.remedy = "remove CUDA_VISIBLE_DEVICES from the environment of the pod or the image";
  return step;
}

}  // namespace

std::vector<std::string> library_path(const ContainerView& inside) {
  return image::path_list(variable(inside.environment, "LD_LIBRARY_PATH").value_or(""));
}

std::vector<Step> container_steps(const rootfs::Root& root, const ContainerView& inside) {
  std::vector<Step> steps{nodes_link(inside)};
  if (auto visible = visible_link(inside)) steps.push_back(*std::move(visible));
  const image::DirectoryFiles files(root);
  if (auto loader = loader_step("container", files)) {
    steps.push_back(*std::move(loader));
    return steps;
  }
  const auto mounts = rootfs::parse_mountinfo(inside.mountinfo);
  const auto libcuda = find_libcuda(root, inside);
  if (auto hidden = mounts_step(libcuda, mounts)) steps.push_back(*std::move(hidden));
  steps.push_back(library_step(libcuda, inside, mounts));
  const auto software = find_software(files, inside.environment);
  if (auto cuda = cuda_step("container", software, inside.program_names_cuda.value_or(false)))
    steps.push_back(*std::move(cuda));
  if (auto framework = framework_step("container", software))
    steps.push_back(*std::move(framework));
  return steps;
}

}  // namespace gantry::why
