// SPDX-License-Identifier: Apache-2.0
// The environment that an image sets, as Gantry's runtime reads it on this machine.
#include "base/core/text.hpp"
#include "container/oci/request.hpp"
#include "container/plan/device_selection.hpp"
#include "container/plan/requirement.hpp"
#include "node/why/image_steps_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using image::variable;
using model::Capability;

constexpr std::string_view kVisible = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kCapabilities = "NVIDIA_DRIVER_CAPABILITIES";

void fail(Step& step, const Error& error, std::string_view remedy) {
  step.verdict = StepStatus::Failed;
  step.cause = error.cause();
  step.remedy = error.remedy().empty() ? std::string(remedy) : error.remedy();
}

Step devices_step(const std::optional<std::string>& visible, const model::ContainerRequest& request,
                  const model::Inventory& machine, plan::Selection& selection) {
  Step step{.id = "image.devices",
            .what = "It asks for GPUs of this machine",
            .read = visible ? fmt::format("{}={}", kVisible, *visible)
                            : fmt::format("{} is not set: it gets the GPUs that its container is "
                                          "started with",
                                          kVisible)};
  const bool none =
      std::find(request.devices.begin(), request.devices.end(), "none") != request.devices.end();
  if (visible && (none || request.devices.empty())) {
    step.verdict = StepStatus::Warning;
    step.cause =
        "the image says that it wants no GPU, unless its container is started with "
        "another value or with a CDI device";
    step.remedy = "--device nvidia.com/gpu=all (podman, docker), or -e NVIDIA_VISIBLE_DEVICES=all";
    return step;
  }
  if (machine.gpus.empty()) {
    step.verdict = StepStatus::Unknown;
    step.read += "; this machine has no GPU";
    return step;
  }
  auto selected = plan::select(machine, request.devices);
  if (!selected.ok()) {
    fail(step, selected.error(), "-e NVIDIA_VISIBLE_DEVICES=all; `gantry list` shows the names");
    return step;
  }
  selection = *std::move(selected);
  if (visible)
    step.read += fmt::format(": {} of this machine's {} GPUs", selection.devices.size(),
                             machine.gpus.size());
  return step;
}

// nullopt: the image does not say it, so the driver's files for programs are there.
std::optional<Step> capabilities_step(const std::optional<std::string>& asked,
                                      const model::ContainerRequest& request) {
  if (!asked) return std::nullopt;
  const auto has = [&](Capability wanted) {
    return std::find(request.capabilities.begin(), request.capabilities.end(), wanted) !=
           request.capabilities.end();
  };
  Step step{.id = "image.capabilities",
            .what = "It asks for the driver's libraries",
            .read = fmt::format("{}={}", kCapabilities, *asked)};
  step.remedy = fmt::format("-e {}=compute,utility", kCapabilities);
  if (!has(Capability::Compute)) {
    step.verdict = StepStatus::Failed;
    step.cause = "without `compute` the container gets no libcuda";
  } else if (!has(Capability::Utility)) {
    step.verdict = StepStatus::Warning;
    step.cause = "without `utility` the container gets neither nvidia-smi nor NVML";
  } else {
    step.remedy.clear();
  }
  return step;
}

std::optional<Step> requirements_step(const model::ContainerRequest& request,
                                      const model::Inventory& machine,
                                      const plan::Selection& selection) {
  if (request.requirements.empty()) return std::nullopt;
  Step step{.id = "image.requirements",
            .what = "The machine has what it requires",
            .read = fmt::format("NVIDIA_REQUIRE_*: {}", fmt::join(request.requirements, "; "))};
  if (machine.driver.version.empty()) {
    step.verdict = StepStatus::Unknown;
    step.read += "; this machine has no driver";
    return step;
  }
  const auto met = plan::check_requirements(request.requirements, machine, selection.devices);
  if (!met.ok()) fail(step, met.error(), "-e NVIDIA_DISABLE_REQUIRE=true skips the check");
  return step;
}

// CUDA counts the GPUs of the list up to the first that does not exist.
std::optional<Step> cuda_visible_step(const std::vector<std::string>& env) {
  const auto value = variable(env, "CUDA_VISIBLE_DEVICES");
  if (!value) return std::nullopt;
  const auto first = trim(std::string_view(*value).substr(0, value->find(',')));
  const bool hides = !parse_u64(first) && !first.starts_with("GPU-") && !first.starts_with("MIG-");
  Step step{.id = "image.cuda-visible",
            .what = "CUDA may use every GPU",
            .verdict = hides ? StepStatus::Failed : StepStatus::Warning,
            .read = "CUDA_VISIBLE_DEVICES=" + *value,
            .remedy = "remove CUDA_VISIBLE_DEVICES from the image"};
  step.cause = hides ? fmt::format("CUDA_VISIBLE_DEVICES={} hides every GPU from CUDA", *value)
                     : "the image chooses among the container's GPUs, which it cannot know";
  return step;
}

std::vector<Step> path_steps(const image::Image& image) {
  std::vector<Step> steps;
  const auto& env = image.config.env;
  const auto programs = image::path_list(variable(env, "PATH").value_or("/usr/bin"));
  if (std::find(programs.begin(), programs.end(), "/usr/bin") == programs.end())
    steps.push_back({.id = "image.path",
                     .what = "Its PATH has /usr/bin",
                     .verdict = StepStatus::Warning,
                     .read = "PATH=" + *variable(env, "PATH"),
                     .cause = "nvidia-smi is put into /usr/bin, where this PATH does not look",
                     .remedy = "ENV PATH=$PATH:/usr/bin in its Dockerfile"});
  for (const auto& directory : image::path_list(variable(env, "LD_LIBRARY_PATH").value_or(""))) {
    if (base_name(directory) != "stubs") continue;
    steps.push_back({.id = "image.stubs",
                     .what = "Its LD_LIBRARY_PATH has no stubs",
                     .verdict = StepStatus::Warning,
                     .read = "LD_LIBRARY_PATH has " + directory,
                     .cause = "a program that loads libcuda.so gets CUDA's stub, which is made for "
                              "the linker: every call fails with CUDA_ERROR_STUB_LIBRARY",
                     .remedy = "name the directory to the linker only: LIBRARY_PATH, or -L"});
    break;
  }
  return steps;
}

// As Gantry's runtime decides for a container that was started with a GPU: one without a request
// has no use for the other variables.
Result<oci::Decision> decide(const std::vector<std::string>& env) {
  oci::Container container{.env = env};
  if (!variable(env, kVisible)) container.env.push_back(fmt::format("{}=all", kVisible));
  return oci::decide_request(container, config::Settings{}, oci::RequestLookups{});
}

}  // namespace

std::vector<Step> image_environment_steps(const image::Image& image,
                                          const model::Inventory& machine) {
  if (!image.has_config)
    return {{.id = "image.environment",
             .what = "What its environment says",
             .verdict = StepStatus::Unknown,
             .read = "a directory has no configuration; an archive of the image has one"}};
  const auto& env = image.config.env;
  std::vector<Step> steps;
  const auto decision = decide(env);
  if (decision.ok()) {
    plan::Selection selection;
    steps.push_back(devices_step(variable(env, kVisible), decision->request, machine, selection));
    if (auto step = capabilities_step(variable(env, kCapabilities), decision->request))
      steps.push_back(*std::move(step));
    if (auto step = requirements_step(decision->request, machine, selection))
      steps.push_back(*std::move(step));
  } else {
    Step step{.id = "image.devices",
              .what = "It asks for GPUs of this machine",
              .read = "its environment"};
    fail(step, decision.error(), "correct the variable in the image, or set it with -e");
    steps.push_back(std::move(step));
  }
  if (auto step = cuda_visible_step(env)) steps.push_back(*std::move(step));
  for (auto& step : path_steps(image)) steps.push_back(std::move(step));
  return steps;
}

}  // namespace gantry::why
