// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/simulated_files.hpp"

#include "base/sys/host.hpp"
#include "sim/machine/elf_writer.hpp"
#include "sim/machine/exports.hpp"
#include "sim/machine/image.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace gantry::sim {
namespace {

constexpr std::size_t kLibraryBytes = std::size_t{256} << 20;

Result<std::string> read_library(const std::string& directory, const std::string& name) {
  GANTRY_TRY(const sys::Host host, sys::Host::at("/"));
  std::error_code failed;
  const auto full =
      std::filesystem::absolute(std::filesystem::path(directory) / name, failed).string();
  return host.read(full, kLibraryBytes)
      .in(fmt::format(
          "simulated driver in {} (build them with `make build`, or name another directory with "
          "GANTRY_SIM_LIBRARIES)",
          directory));
}

}  // namespace

Result<SimulatedFiles> read_simulated_files(const std::string& directory) {
  SimulatedFiles files;
  if (directory.empty()) return files;
  GANTRY_TRY(files.cuda, read_library(directory, "libcuda.so"));
  GANTRY_TRY(files.nvml, read_library(directory, "libnvidia-ml.so"));
  for (const auto* name : {"nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}) {
    GANTRY_TRY(files.programs[name], read_library(directory, name));
  }
  return files;
}

std::string driver_library_content(std::string_view library, std::string_view soname,
                                   std::uint32_t branch, const struct gantry_sim_image& image,
                                   const SimulatedFiles& files) {
  const bool cuda = library.starts_with("libcuda.so");
  const bool nvml = library.starts_with("libnvidia-ml.so");
  if (!cuda && !nvml) return shared_object(soname, ElfClass::Bits64);
  std::string ours = cuda ? files.cuda : files.nvml;
  // On an error the file is not one of our libraries and stays unchanged.
  if (nvml) (void)hide_newer_nvml_functions(ours, branch);
  if (ours.empty()) ours = shared_object(soname, ElfClass::Bits64);
  return append_image(ours, image);
}

}  // namespace gantry::sim
