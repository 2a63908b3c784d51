// SPDX-License-Identifier: Apache-2.0
#include "gantry/container_cli_log.hpp"

#include "gantry/format_values.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <ctime>

namespace gantry::cli {

Result<ContainerCliLog> ContainerCliLog::open(const std::string& path) {
  ContainerCliLog log;
  if (path.empty()) return log;
  log.file_.reset(std::fopen(path.c_str(), "ae"));
  if (log.file_ == nullptr) return Error::sys(errno, fmt::format("open the debug file {}", path));
  return log;
}

void ContainerCliLog::line(char severity, std::string_view text) const {
  if (file_ == nullptr) return;
  timespec now{};
  tm local{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::localtime_r(&now.tv_sec, &local);
  // A full disk must not fail the command that is being debugged.
  (void)std::fprintf(file_.get(), "%c%02d%02d %02d:%02d:%02d.%06ld %ld gantry] %.*s\n", severity,
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                     now.tv_nsec / 1000, static_cast<long>(::getpid()),
                     static_cast<int>(text.size()), text.data());
  (void)std::fflush(file_.get());
}

void ContainerCliLog::machine(const model::Inventory& machine) const {
  if (file_ == nullptr) return;
  const auto& driver = machine.driver;
  info(fmt::format("kernel module {}, libraries {} in {}, CUDA {}", format_known(driver.version),
                   format_known(driver.library_version), format_known(driver.library_directory),
                   format_known(driver.cuda_version)));
  if (!driver.nvml_error.empty()) error("NVML: " + driver.nvml_error);
  for (const auto& gpu : machine.gpus) {
    info(fmt::format("GPU {} {} {} at {}: {}", gpu.index, format_known(gpu.uuid.text),
                     format_known(gpu.name), gpu.pci.nvml(), format_health(gpu.health)));
  }
  for (const auto& node : machine.nodes) info(fmt::format("node {}: {}", node.path, node.why));
  for (const auto& file : machine.files) info(fmt::format("file {}: {}", file.path, file.why));
  for (const auto& d : machine.differences) {
    error(fmt::format("sources disagree on {}: kernel says {}, NVML says {}", d.what, d.kernel,
                      d.nvml));
  }
  for (const auto& note : machine.notes) error(note);
}

}  // namespace gantry::cli
