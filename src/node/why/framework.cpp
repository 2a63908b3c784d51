// SPDX-License-Identifier: Apache-2.0
// Looks for software in the image that would use a GPU: CUDA's runtime library, and frameworks
// built with or without CUDA.
#include "base/core/text.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "node/why/container_steps_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;

constexpr std::size_t kVersionFileLimit = std::size_t{1} << 20;
constexpr std::size_t kImageCacheLimit = std::size_t{8} << 20;
constexpr std::size_t kNames = 65536;  // in one directory
constexpr std::size_t kPlaces = 64;

struct Framework {
  std::string name;
  std::string place;
  bool cuda = false;
  std::string remedy;
};

bool has(const rootfs::Root& root, const std::string& path) {
  return root.info(path).ok();
}

bool any_name(const rootfs::Root& root, const std::string& directory, std::string_view pattern) {
  const auto names = root.list(directory, kNames);
  return names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           return glob_match(pattern, name);
         });
}

std::optional<Framework> torch_in(const rootfs::Root& root, const std::string& place) {
  const auto text = root.read(place + "/torch/version.py", kVersionFileLimit);
  if (!text.ok()) return std::nullopt;
  const bool without = contains(*text, "+cpu") || contains(*text, "cuda: Optional[str] = None") ||
                       contains(*text, "cuda = None");
  return Framework{"PyTorch", place + "/torch", !without,
                   "install torch from https://download.pytorch.org/whl/cu128, not .../cpu"};
}

std::optional<Framework> tensorflow_in(const rootfs::Root& root, const std::string& place) {
  const auto text =
      root.read(place + "/tensorflow/python/platform/build_info.py", kVersionFileLimit);
  if (!text.ok()) return std::nullopt;
  const bool with = contains(*text, "'is_cuda_build': True") ||
                    contains(*text, "\"is_cuda_build\": True") ||
                    contains(*text, "is_cuda_build = True");
  return Framework{"TensorFlow", place + "/tensorflow", with,
                   "pip install 'tensorflow[and-cuda]' in place of tensorflow-cpu"};
}

std::optional<Framework> jax_in(const rootfs::Root& root, const std::string& place) {
  if (!has(root, place + "/jaxlib")) return std::nullopt;
  const bool with = any_name(root, place, "jax_cuda*") || any_name(root, place, "jaxlib-*+cuda*") ||
                    has(root, place + "/jaxlib/cuda");
  return Framework{"JAX", place + "/jaxlib", with, "pip install 'jax[cuda12]'"};
}

std::optional<Framework> onnx_in(const rootfs::Root& root, const std::string& place) {
  const auto capi = place + "/onnxruntime/capi";
  if (!has(root, capi)) return std::nullopt;
  return Framework{"ONNX Runtime", place + "/onnxruntime",
                   any_name(root, capi, "libonnxruntime_providers_cuda.so*"),
                   "pip uninstall onnxruntime; pip install onnxruntime-gpu"};
}

std::vector<Framework> frameworks(const rootfs::Root& root,
                                  const std::vector<std::string>& places) {
  std::vector<Framework> found;
  for (const auto& place : places) {
    for (auto* const look : {torch_in, tensorflow_in, jax_in, onnx_in}) {
      if (auto framework = look(root, place)) found.push_back(*std::move(framework));
    }
  }
  return found;
}

void add_pythons(const rootfs::Root& root, const std::string& base,
                 std::vector<std::string>& places) {
  const auto names = root.list(base, kNames);
  if (!names.ok()) return;
  for (const auto& name : *names) {
    if (!name.starts_with("python3")) continue;
    for (const auto* kind : {"site-packages", "dist-packages"}) {
      auto place = fmt::format("{}/{}/{}", base, name, kind);
      if (places.size() < kPlaces && has(root, place)) places.push_back(std::move(place));
    }
  }
}

// A directory that contains libcudart; "" if there is none.
std::string runtime_place(const rootfs::Root& root, const ContainerView& inside,
                          const std::vector<std::string>& places) {
  auto directories = library_path(inside);
  for (const auto* usual :
       {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
        "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/opt/conda/lib"})
    directories.emplace_back(usual);
  for (const auto& place : places) {
    for (const auto* below : {"/nvidia/cuda_runtime/lib", "/nvidia/cu13/lib", "/torch/lib"})
      directories.push_back(place + below);
  }
  for (const auto& directory : directories) {
    if (any_name(root, directory, "libcudart*.so*")) return directory;
  }
  const auto bytes = root.read("/etc/ld.so.cache", kImageCacheLimit);
  const auto cache = bytes.ok() ? loader::parse_ld_cache(*bytes) : bytes.error();
  if (!cache.ok()) return "";
  for (const auto& entry : cache->entries) {
    if (entry.name.starts_with("libcudart.so") && has(root, entry.path)) return entry.path;
  }
  return "";
}

}  // namespace

std::vector<std::string> python_directories(const rootfs::Root& root, const ContainerView& inside) {
  std::vector<std::string> bases{"/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/opt/venv/lib"};
  for (const auto* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME"}) {
    const auto value = variable(inside, name);
    if (value && value->starts_with('/')) bases.push_back(*value + "/lib");
  }
  std::vector<std::string> places;
  const auto path = variable(inside, "PYTHONPATH").value_or("");
  for (const auto directory : split(path, ':')) {
    if (directory.starts_with('/') && places.size() < kPlaces) places.emplace_back(directory);
  }
  for (const auto& base : bases) add_pythons(root, base, places);
  return places;
}

std::optional<Step> framework_step(const rootfs::Root& root,
                                   const std::vector<std::string>& places) {
  const auto found = frameworks(root, places);
  if (found.empty()) return std::nullopt;
  std::vector<std::string> read;
  read.reserve(found.size());
  for (const auto& framework : found)
    read.push_back(fmt::format("{} ({})", framework.place, framework.cuda ? "CUDA" : "no CUDA"));
  Step step{.id = "container.framework",
            .what = "Its framework supports GPUs",
            .read = fmt::format("{}", fmt::join(read, ", "))};
  const auto without = std::find_if(found.begin(), found.end(),
                                    [](const Framework& framework) { return !framework.cuda; });
  if (without == found.end()) return step;
  const bool any = std::any_of(found.begin(), found.end(),
                               [](const Framework& framework) { return framework.cuda; });
  step.verdict = any ? StepStatus::Warning : StepStatus::Failed;
  step.cause = fmt::format(
      "the image's {} was built without CUDA: it cannot use a GPU on any machine", without->name);
  step.remedy = "in the image: " + without->remedy;
  return step;
}

Step cuda_step(const rootfs::Root& root, const ContainerView& inside,
               const std::vector<std::string>& places) {
  Step step{.id = "container.cuda", .what = "The image has CUDA"};
  const auto all = frameworks(root, places);
  step.read = runtime_place(root, inside, places);
  if (!step.read.empty()) return step;
  step.read = "its program contains it";
  if (inside.program_names_cuda.value_or(false)) return step;
  step.read = all.empty() ? "no libcudart, no framework" : all.front().place;
  if (!all.empty()) return step;
  step.verdict = StepStatus::Warning;
  step.cause =
      "the image has neither CUDA's runtime library nor a framework that contains it: only "
      "programs that are linked with CUDA statically work";
  step.remedy =
      "build the image from nvidia/cuda:...-runtime, or install the framework's CUDA "
      "build in it";
  return step;
}

}  // namespace gantry::why
