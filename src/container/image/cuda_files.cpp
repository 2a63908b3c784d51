// SPDX-License-Identifier: Apache-2.0
#include "container/image/cuda_files.hpp"

#include "base/core/text.hpp"
#include "container/image/frameworks.hpp"
#include "container/rootfs/compat.hpp"
#include "gpu/loader/ld_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::image {
namespace {

constexpr std::size_t kImageCacheLimit = std::size_t{8} << 20U;
constexpr std::size_t kCompatLimit = std::size_t{128} << 20U;
constexpr std::string_view kLibcuda = "libcuda.so.1";

std::vector<std::string> loader_directories(std::span<const std::string> env) {
  auto directories = path_list(variable(env, "LD_LIBRARY_PATH").value_or(""));
  for (const auto* usual :
       {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib",
        "/usr/local/nvidia/lib64"})
    directories.emplace_back(usual);
  return directories;
}

std::vector<std::string> cuda_directories(const RootFiles& files, std::span<const std::string> env,
                                          std::span<const std::string> python_directories) {
  auto directories = loader_directories(env);
  for (const auto* usual : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
                            "/usr/local/cuda/targets/sbsa-linux/lib", "/opt/conda/lib"})
    directories.emplace_back(usual);
  for (const auto& place : python_directories) {
    // conda has them in the environment's lib: /opt/conda/envs/a/lib/python3.11/site-packages.
    directories.emplace_back(parent_directory(parent_directory(place)));
    directories.push_back(place + "/torch/lib");
    // One directory for each package: nvidia/cublas/lib; nvidia/cu13/lib has all of CUDA 13.
    for (const auto& package : files.list(place + "/nvidia"))
      directories.push_back(fmt::format("{}/nvidia/{}/lib", place, package));
  }
  return directories;
}

// "libcudart.so.12.4.127" -> "12.4.127"; also "libcudart-9335f6a2.so.12".
std::string version_in_name(std::string_view name) {
  const auto at = name.find(".so.");
  return at == std::string_view::npos ? "" : std::string(name.substr(at + 4));
}

// A file name may claim any version; the oldest is as good as any for one that is not a number.
std::string comparable(const std::string& version) {
  return loader::compare_versions(version, version) ? version : "0";
}

// The longest name says most: libcudart.so, libcudart.so.12, libcudart.so.12.4.127.
std::optional<CudaRuntime> runtime_in(const RootFiles& files, const std::string& directory) {
  std::optional<CudaRuntime> found;
  for (const auto& name : files.list(directory)) {
    if (!glob_match("libcudart*.so*", name)) continue;
    auto version = version_in_name(name);
    if (!found || version.size() > found->version.size())
      found = CudaRuntime{join_path(directory, name), std::move(version)};
  }
  return found;
}

// Of NVIDIA's Python packages only the directory of the package has the whole version.
void complete_version(const RootFiles& files, std::span<const std::string> python_directories,
                      CudaRuntime& runtime) {
  for (const auto& place : python_directories) {
    if (!runtime.path.starts_with(place + "/nvidia/")) continue;
    for (const auto* package : {"nvidia_cuda_runtime", "nvidia_cuda_runtime_cu13",
                                "nvidia_cuda_runtime_cu12", "nvidia_cuda_runtime_cu11"}) {
      auto version = package_version(files, place, package);
      if (version.starts_with(runtime.version) && version.size() > runtime.version.size())
        runtime.version = std::move(version);
    }
  }
}

std::vector<std::string> cached_paths(const RootFiles& files, std::string_view name) {
  std::vector<std::string> paths;
  const auto bytes = files.read("/etc/ld.so.cache", kImageCacheLimit);
  const auto cache = bytes ? loader::parse_ld_cache(*bytes)
                           : Result<loader::LdCache>(Error(Errc::NotFound, "no ld.so.cache"));
  if (!cache.ok()) return paths;
  for (const auto& entry : cache->entries) {
    if (entry.name.starts_with(name) && files.exists(entry.path)) paths.push_back(entry.path);
  }
  return paths;
}

bool is_compat(std::string_view directory) {
  return directory.starts_with("/usr/local/cuda") && base_name(directory) == "compat";
}

std::string libcuda_version(const RootFiles& files, const std::string& directory) {
  for (const auto& name : files.list(directory)) {
    if (glob_match("libcuda.so.*.*", name)) return name.substr(std::string("libcuda.so.").size());
  }
  return "";
}

}  // namespace

rootfs::Loaders find_loaders(const RootFiles& files) {
  const auto paths = rootfs::glibc_loader_paths();
  rootfs::Loaders found{
      .glibc = std::any_of(paths.begin(), paths.end(),
                           [&](std::string_view path) { return files.size(path).has_value(); }),
      .musl_architectures = rootfs::musl_architectures(files.list("/lib"))};
  found.musl = !found.musl_architectures.empty();
  return found;
}

std::vector<CudaRuntime> find_cuda_runtimes(const RootFiles& files,
                                            std::span<const std::string> env,
                                            std::span<const std::string> python_directories) {
  std::vector<CudaRuntime> found;
  const auto add = [&](CudaRuntime runtime) {
    complete_version(files, python_directories, runtime);
    found.push_back(std::move(runtime));
  };
  for (const auto& directory : cuda_directories(files, env, python_directories)) {
    if (auto runtime = runtime_in(files, directory)) add(*std::move(runtime));
  }
  if (found.empty()) {
    for (auto& path : cached_paths(files, "libcudart.so"))
      add({path, version_in_name(base_name(path))});
  }
  std::stable_sort(found.begin(), found.end(), [](const CudaRuntime& a, const CudaRuntime& b) {
    return *loader::compare_versions(comparable(a.version), comparable(b.version)) > 0;
  });
  return found;
}

bool has_library(const RootFiles& files, std::span<const std::string> env,
                 std::span<const std::string> python_directories, std::string_view name) {
  const auto pattern = fmt::format("{}*", name);
  for (const auto& directory : cuda_directories(files, env, python_directories)) {
    if (any_name(files, directory, pattern)) return true;
  }
  return !cached_paths(files, name).empty();
}

std::optional<OwnLibcuda> find_own_libcuda(const RootFiles& files,
                                           std::span<const std::string> env) {
  const auto named = path_list(variable(env, "LD_LIBRARY_PATH").value_or(""));
  for (const auto& directory : loader_directories(env)) {
    auto path = join_path(directory, kLibcuda);
    const auto size = files.size(path);
    if (!size) continue;
    const bool first = std::find(named.begin(), named.end(), directory) != named.end();
    return OwnLibcuda{std::move(path), libcuda_version(files, directory), *size, first};
  }
  for (auto& path : cached_paths(files, kLibcuda)) {
    const std::string directory(parent_directory(path));
    const auto size = files.size(path);
    if (size && !is_compat(directory))
      return OwnLibcuda{std::move(path), libcuda_version(files, directory), *size, false};
  }
  return std::nullopt;
}

std::optional<CompatPackage> find_compat(const RootFiles& files, const loader::HostVersions& host) {
  const std::string directory(rootfs::kCompatDirectory);
  CompatPackage package{.version = libcuda_version(files, directory)};
  if (package.version.empty()) return std::nullopt;
  std::optional<loader::CompatNote> note;
  const auto path = fmt::format("{}/libcuda.so.{}", directory, package.version);
  if (const auto bytes = files.read(path, kCompatLimit)) {
    const auto elf = loader::Elf::open(std::string_view(*bytes));
    if (elf.ok()) note = loader::read_compat_note(*elf).value_or(std::nullopt);
  }
  if (note) package.cuda_version = note->cuda_version;
  package.decision = loader::decide_compat(package.version, note, host);
  return package;
}

}  // namespace gantry::image
