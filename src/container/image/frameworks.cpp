// SPDX-License-Identifier: Apache-2.0
#include "container/image/frameworks.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::image {
namespace {

constexpr std::size_t kVersionFileLimit = std::size_t{1} << 20U;
constexpr std::size_t kPlaces = 64;

// The value of "NAME = 'value'" or "NAME: Optional[str] = 'value'"; "" for None, nullopt if there
// is no such line.
std::optional<std::string> assigned(std::string_view text, std::string_view name) {
  for (const auto line : lines(text)) {
    if (!line.starts_with(name)) continue;
    const auto after = line.substr(name.size());
    const auto equals = after.find('=');
    if (equals == std::string_view::npos || (!after.starts_with(':') && !after.starts_with(' ')))
      continue;
    auto value = trim(after.substr(equals + 1));
    if (value.size() < 2 || (value.front() != '\'' && value.front() != '"')) return "";
    return std::string(value.substr(1, value.size() - 2));
  }
  return std::nullopt;
}

// The version says "+cpu", or no CUDA version is set. A wheel whose large libraries were removed
// to make an image smaller has no CUDA either.
std::optional<Framework> torch_in(const RootFiles& files, const std::string& place) {
  const auto text = files.read(place + "/torch/version.py", kVersionFileLimit);
  if (!text) return std::nullopt;
  Framework torch{.name = "PyTorch",
                  .place = place + "/torch",
                  .version = assigned(*text, "__version__").value_or(""),
                  .cuda_version = assigned(*text, "cuda").value_or(""),
                  .remedy =
                      "install torch from https://download.pytorch.org/whl/cu128, not "
                      ".../cpu"};
  const bool has_libraries = any_name(files, torch.place + "/lib", "libtorch_cpu.so*");
  const bool has_cuda_library = any_name(files, torch.place + "/lib", "libtorch_cuda*.so*");
  torch.cuda = !torch.cuda_version.empty() && !contains(torch.version, "+cpu") &&
               (has_cuda_library || !has_libraries);
  if (!torch.cuda && !assigned(*text, "hip").value_or("").empty()) torch.other = "ROCm";
  return torch;
}

// build_info is a dictionary, or since 2.18 a list of pairs: "'is_cuda_build': True" and
// "('is_cuda_build', True)". Returns the value as written; "" if there is none.
std::string_view build_value(std::string_view text, std::string_view key) {
  const auto at = text.find(fmt::format("'{}'", key));
  const auto quoted = at != std::string_view::npos ? at : text.find(fmt::format("\"{}\"", key));
  auto rest =
      quoted == std::string_view::npos ? std::string_view() : text.substr(quoted + key.size() + 2);
  while (rest.starts_with(':') || rest.starts_with(',') || rest.starts_with(' '))
    rest.remove_prefix(1);
  return rest.substr(0, rest.find_first_of(",)}\n"));
}

std::optional<Framework> tensorflow_in(const RootFiles& files, const std::string& place) {
  const auto text =
      files.read(place + "/tensorflow/python/platform/build_info.py", kVersionFileLimit);
  if (!text) return std::nullopt;
  auto version = package_version(files, place, "tensorflow");
  if (version.empty()) version = package_version(files, place, "tensorflow_cpu");
  auto cuda_version = build_value(*text, "cuda_version");
  if (cuda_version.size() >= 2) cuda_version = cuda_version.substr(1, cuda_version.size() - 2);
  return Framework{.name = "TensorFlow",
                   .place = place + "/tensorflow",
                   .version = std::move(version),
                   .cuda = build_value(*text, "is_cuda_build") == "True" ||
                           contains(*text, "is_cuda_build = True"),
                   .cuda_version = std::string(cuda_version),
                   .other = build_value(*text, "is_rocm_build") == "True" ? "ROCm" : "",
                   .remedy = "pip install 'tensorflow[and-cuda]' in place of tensorflow-cpu"};
}

std::optional<Framework> jax_in(const RootFiles& files, const std::string& place) {
  if (!files.exists(place + "/jaxlib")) return std::nullopt;
  const bool with = any_name(files, place, "jax_cuda*") ||
                    any_name(files, place, "jaxlib-*+cuda*") ||
                    files.exists(place + "/jaxlib/cuda");
  return Framework{.name = "JAX",
                   .place = place + "/jaxlib",
                   .version = package_version(files, place, "jaxlib"),
                   .cuda = with,
                   .remedy = "pip install 'jax[cuda12]'"};
}

std::optional<Framework> onnx_in(const RootFiles& files, const std::string& place) {
  const auto capi = place + "/onnxruntime/capi";
  if (!files.exists(capi)) return std::nullopt;
  return Framework{.name = "ONNX Runtime",
                   .place = place + "/onnxruntime",
                   .cuda = any_name(files, capi, "libonnxruntime_providers_cuda.so*"),
                   .remedy = "pip uninstall onnxruntime; pip install onnxruntime-gpu"};
}

void add_place(const RootFiles& files, std::string place, std::vector<std::string>& places) {
  if (places.size() < kPlaces && std::find(places.begin(), places.end(), place) == places.end() &&
      files.exists(place))
    places.push_back(std::move(place));
}

void add_pythons(const RootFiles& files, const std::string& base,
                 std::vector<std::string>& places) {
  for (const auto& name : files.list(base)) {
    if (!name.starts_with("python3")) continue;
    for (const auto* kind : {"site-packages", "dist-packages"})
      add_place(files, fmt::format("{}/{}/{}", base, name, kind), places);
  }
}

}  // namespace

std::optional<std::string> variable(std::span<const std::string> env, std::string_view name) {
  for (const auto& entry : env) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::vector<std::string> path_list(std::string_view value) {
  std::vector<std::string> directories;
  for (auto directory : split(value, ':')) {
    while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
    if (directory.starts_with('/') && directories.size() < kPlaces)
      directories.emplace_back(directory);
  }
  return directories;
}

std::string package_version(const RootFiles& files, const std::string& directory,
                            std::string_view name) {
  constexpr std::string_view kEnd = ".dist-info";
  const auto pattern = fmt::format("{}-*{}", name, kEnd);
  for (const auto& entry : files.list(directory)) {
    if (glob_match(pattern, entry))
      return entry.substr(name.size() + 1, entry.size() - name.size() - 1 - kEnd.size());
  }
  return "";
}

std::vector<std::string> python_directories(const RootFiles& files,
                                            std::span<const std::string> env) {
  std::vector<std::string> places;
  for (auto& directory : path_list(variable(env, "PYTHONPATH").value_or("")))
    add_place(files, std::move(directory), places);
  std::vector<std::string> bases;
  for (const auto* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME"}) {
    const auto value = variable(env, name);
    if (value && value->starts_with('/')) bases.push_back(*value + "/lib");
  }
  // A virtual environment is usually entered by its place in PATH alone.
  for (const auto& directory : path_list(variable(env, "PATH").value_or(""))) {
    if (base_name(directory) == "bin")
      bases.push_back(join_path(parent_directory(directory), "lib"));
  }
  for (const auto* usual : {"/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/opt/venv/lib"})
    bases.emplace_back(usual);
  for (const auto& base : bases) add_pythons(files, base, places);
  return places;
}

std::vector<Framework> find_frameworks(const RootFiles& files,
                                       std::span<const std::string> directories) {
  std::vector<Framework> found;
  for (const auto& directory : directories) {
    for (auto* const look : {torch_in, tensorflow_in, jax_in, onnx_in}) {
      if (auto framework = look(files, directory)) found.push_back(*std::move(framework));
    }
  }
  return found;
}

}  // namespace gantry::image
