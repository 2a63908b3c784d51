// SPDX-License-Identifier: Apache-2.0
// CUDA in an image against the machine's driver.
#include "base/core/text.hpp"
#include "container/plan/requirement.hpp"
#include "node/why/image_steps_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;
using image::CompatPackage;
using image::Framework;

// Since CUDA 11 a program runs on a driver of an older minor version of the same major version.
constexpr int kFirstMinorCompatible = 11;

struct RequiredCuda {
  std::string version;  // "12.4"
  std::string from;     // "PyTorch", "libcudart"
};

// "12.4.127" -> "12.4"
std::string minor_version(std::string_view version) {
  const auto parts = split(version, '.');
  if (parts.empty() || !all_digits(parts[0])) return "";
  return parts.size() > 1 && all_digits(parts[1]) ? fmt::format("{}.{}", parts[0], parts[1])
                                                  : fmt::format("{}.0", parts[0]);
}

bool is_newer(std::string_view a, std::string_view b) {
  return loader::compare_versions(a, b).value_or(0) > 0;
}

// A framework brings the runtime that it was built with; other programs use the newest one.
RequiredCuda required_cuda(const Software& software) {
  RequiredCuda wanted;
  for (const auto& framework : software.frameworks) {
    const auto version = minor_version(framework.cuda_version);
    if (framework.cuda && !version.empty() &&
        (wanted.version.empty() || is_newer(version, wanted.version)))
      wanted = {version, framework.name};
  }
  if (!wanted.version.empty() || software.runtimes.empty()) return wanted;
  return {minor_version(software.runtimes.front().version), "its libcudart"};
}

bool same_major(std::string_view a, std::string_view b) {
  return a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

int major_of(std::string_view version) {
  return static_cast<int>(parse_u64(version.substr(0, version.find('.'))).value_or(0));
}

std::string compat_cuda(const CompatPackage& compat) {
  return compat.cuda_version.empty() ? plan::newest_cuda_for_driver(compat.version)
                                     : compat.cuda_version;
}

// The image is newer than the driver.
void explain_newer(Step& step, const RequiredCuda& wanted, const std::string& here,
                   const std::optional<CompatPackage>& compat) {
  if (compat && compat->decision.use && !is_newer(wanted.version, compat_cuda(*compat))) {
    step.read += fmt::format("; for forward compatibility: {}", compat->decision.why);
    return;
  }
  step.remedy = fmt::format(
      "install a driver for CUDA {} or newer on the machine, or use an image "
      "for CUDA {} or older",
      wanted.version, here);
  if (same_major(wanted.version, here) && major_of(here) >= kFirstMinorCompatible) {
    step.verdict = StepStatus::Warning;
    step.cause = fmt::format(
        "{} is for CUDA {}, the driver for {}: within CUDA {} that works, except for kernels that "
        "are compiled while the program runs (PTX)",
        wanted.from, wanted.version, here, major_of(here));
    return;
  }
  step.verdict = StepStatus::Failed;
  step.cause = fmt::format(
      "{} is for CUDA {}, but the machine's driver supports up to CUDA {}: the program ends with "
      "\"CUDA driver version is insufficient for CUDA runtime version\"",
      wanted.from, wanted.version, here);
  if (compat)
    step.cause += fmt::format("; the package for forward compatibility does not help: {}",
                              compat->decision.why);
}

std::optional<Step> version_step(const Software& software, const model::Inventory& machine,
                                 const std::optional<CompatPackage>& compat) {
  const auto wanted = required_cuda(software);
  if (wanted.version.empty()) return std::nullopt;
  Step step{.id = "image.cuda-version", .what = "Its CUDA suits the driver"};
  const auto here = driver_cuda(machine);
  if (here.empty()) {
    step.verdict = StepStatus::Unknown;
    step.read =
        fmt::format("{} is for CUDA {}; this machine has no driver", wanted.from, wanted.version);
    return step;
  }
  step.read = fmt::format("{} is for CUDA {}; driver {} has {}", wanted.from, wanted.version,
                          machine.driver.version, here);
  if (is_newer(wanted.version, here)) explain_newer(step, wanted, here, compat);
  return step;
}

// The libraries that each framework loads when it first uses a GPU.
constexpr std::array kLibraries{"libcudart", "libcublas", "libcudnn"};

std::string install_all(const Framework& framework) {
  if (framework.name == "PyTorch") return "pip install torch, without --no-deps";
  if (framework.name == "TensorFlow") return "pip install 'tensorflow[and-cuda]'";
  if (framework.name == "JAX") return "pip install 'jax[cuda12]'";
  return "build the image from nvidia/cuda:...-cudnn-runtime";
}

std::optional<Step> libraries_step(const image::Image& image, const Software& software) {
  const auto framework = std::find_if(software.frameworks.begin(), software.frameworks.end(),
                                      [](const Framework& candidate) { return candidate.cuda; });
  if (framework == software.frameworks.end()) return std::nullopt;
  std::vector<std::string_view> missing;
  for (const auto* library : kLibraries) {
    if (!image::has_library(*image.files, image.config.env, software.python_directories, library))
      missing.emplace_back(library);
  }
  Step step{.id = "image.libraries",
            .what = "It has the libraries of CUDA",
            .read = fmt::format("{}", fmt::join(kLibraries, ", "))};
  if (missing.empty()) return step;
  step.verdict = StepStatus::Failed;
  step.read = fmt::format("no {}", fmt::join(missing, ", no "));
  step.cause = fmt::format("{} loads {} when it first uses a GPU; the image lacks {}",
                           framework->name, fmt::join(kLibraries, ", "), fmt::join(missing, ", "));
  step.remedy = "in the image: " + install_all(*framework);
  return step;
}

void explain_libcuda(Step& step, const image::OwnLibcuda& own, const std::string& driver) {
  const auto which = own.version.empty() ? "" : fmt::format(" of driver {}", own.version);
  step.verdict = own.in_library_path ? StepStatus::Failed : StepStatus::Warning;
  step.cause = own.in_library_path
                   ? fmt::format(
                         "LD_LIBRARY_PATH leads to the image's own libcuda{}, before that "
                         "of the machine{}",
                         which, driver.empty() ? "" : fmt::format(" ({})", driver))
                   : fmt::format(
                         "the image has its own libcuda{}, which may hide that of the "
                         "machine: it belongs to the driver, not to an image",
                         which);
  if (own.size == 0)
    step.cause =
        "the image has an empty libcuda.so.1: it was committed from a container that had "
        "a GPU, and without one its programs say \"file too short\"";
  step.remedy = fmt::format("remove it from the image: rm {}*",
                            own.path.substr(0, own.path.rfind(".so") + 3));
}

// A libcuda for forward compatibility may come first if it may be used here.
Step libcuda_step(const image::Image& image, const model::Inventory& machine,
                  const std::optional<CompatPackage>& compat) {
  Step step{.id = "image.libcuda",
            .what = "It leaves libcuda to the driver",
            .read = "no libcuda.so.1 where the loader looks"};
  const auto own = image::find_own_libcuda(*image.files, image.config.env);
  if (!own) return step;
  step.read = own->version.empty() ? own->path : fmt::format("{} ({})", own->path, own->version);
  if (compat && compat->decision.use && parent_directory(own->path) == rootfs::kCompatDirectory) {
    step.read += ", for forward compatibility";
    return step;
  }
  explain_libcuda(step, *own, machine.driver.version);
  return step;
}

}  // namespace

std::string driver_cuda(const model::Inventory& machine) {
  const auto& driver = machine.driver;
  return driver.cuda_version.empty() ? plan::newest_cuda_for_driver(driver.version)
                                     : driver.cuda_version;
}

std::vector<Step> image_cuda_steps(const image::Image& image, const model::Inventory& machine,
                                   const Software& software) {
  const auto compat =
      image::find_compat(*image.files, {machine.driver.version, driver_cuda(machine)});
  std::vector<Step> steps;
  if (auto version = version_step(software, machine, compat)) steps.push_back(*std::move(version));
  if (auto libraries = libraries_step(image, software)) steps.push_back(*std::move(libraries));
  steps.push_back(libcuda_step(image, machine, compat));
  return steps;
}

}  // namespace gantry::why
