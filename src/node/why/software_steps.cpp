// SPDX-License-Identifier: Apache-2.0
#include "node/why/software_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using image::Framework;

bool with_cuda(const Framework& framework) {
  return framework.cuda;
}

std::string described(const Framework& framework) {
  const auto version = framework.version.empty() ? "" : fmt::format(" {}", framework.version);
  const auto* built = framework.cuda ? "CUDA" : "no CUDA";
  return fmt::format("{} ({}{}, {}{}{})", framework.place, framework.name, version, built,
                     framework.cuda_version.empty() ? "" : " ", framework.cuda_version);
}

}  // namespace

Software find_software(const image::RootFiles& files, std::span<const std::string> env) {
  Software software{.python_directories = image::python_directories(files, env)};
  software.frameworks = image::find_frameworks(files, software.python_directories);
  software.runtimes = image::find_cuda_runtimes(files, env, software.python_directories);
  return software;
}

std::optional<Step> loader_step(std::string_view scope, const image::RootFiles& files) {
  const auto loaders = image::find_loaders(files);
  if (loaders.glibc) return std::nullopt;
  Step step{.id = fmt::format("{}.loader", scope),
            .what = "Its C library is glibc",
            .verdict = StepStatus::Failed,
            .read = "no dynamic loader",
            .cause = "the image has static programs only: nothing in it can load libcuda",
            .remedy = "use an image with glibc and CUDA: nvidia/cuda, or a framework's own"};
  if (loaders.musl) {
    step.id = fmt::format("{}.musl", scope);
    step.read = fmt::format("/lib/ld-musl-{}.so.1", loaders.musl_architectures.front());
    step.cause = "the image is built on musl (Alpine); the driver's libraries need glibc";
    step.remedy = "use an image with glibc: debian, ubuntu, nvidia/cuda";
  }
  return step;
}

std::optional<Step> framework_step(std::string_view scope, const Software& software) {
  const auto& found = software.frameworks;
  if (found.empty()) return std::nullopt;
  std::vector<std::string> read;
  read.reserve(found.size());
  for (const auto& framework : found) read.push_back(described(framework));
  Step step{.id = fmt::format("{}.framework", scope),
            .what = "Its framework supports GPUs",
            .read = fmt::format("{}", fmt::join(read, ", "))};
  const auto without = std::find_if_not(found.begin(), found.end(), &with_cuda);
  if (without == found.end()) return step;
  const bool any = std::any_of(found.begin(), found.end(), &with_cuda);
  step.verdict = any ? StepStatus::Warning : StepStatus::Failed;
  step.cause =
      without->other.empty()
          ? fmt::format("the image's {} was built without CUDA: it cannot use a GPU on any machine",
                        without->name)
          : fmt::format(
                "the image's {} was built for {}, not for CUDA: it cannot use a GPU of "
                "NVIDIA",
                without->name, without->other);
  step.remedy = "in the image: " + without->remedy;
  return step;
}

std::optional<Step> cuda_step(std::string_view scope, const Software& software,
                              bool program_names_cuda) {
  Step step{.id = fmt::format("{}.cuda", scope), .what = "The image has CUDA"};
  const auto& all = software.frameworks;
  const auto with = std::find_if(all.begin(), all.end(), &with_cuda);
  if (!software.runtimes.empty()) {
    step.read = software.runtimes.front().path;
  } else if (program_names_cuda) {
    step.read = "its program contains it";
  } else if (with != all.end()) {
    step.read = with->place;
  } else if (!all.empty()) {
    return std::nullopt;
  } else {
    step.verdict = StepStatus::Warning;
    step.read = "no libcudart, no framework";
    step.cause =
        "the image has neither CUDA's runtime library nor a framework that contains it: only "
        "programs that are linked with CUDA statically work";
    step.remedy =
        "build the image from nvidia/cuda:...-runtime, or install the framework's CUDA build in it";
  }
  return step;
}

}  // namespace gantry::why
