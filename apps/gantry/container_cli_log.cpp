// SPDX-License-Identifier: Apache-2.0
#include "gantry/container_cli_log.hpp"

#include "base/sys/unique_fd.hpp"
#include "gantry/format_values.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::cli {

Result<Log> open_container_cli_log(const std::string& path) {
  if (!path.empty()) {
    const sys::UniqueFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0666));
    if (!file.valid()) return Error::sys(errno, fmt::format("open the debug file {}", path));
  }
  return Log(LogForm::ContainerCli, 0, append_to_file(path));
}

void log_machine(const Log& log, const model::Inventory& machine) {
  const auto component = kContainerCliComponent;
  const auto& driver = machine.driver;
  log.info(component, "driver",
           {{"kernel_module", format_known(driver.version)},
            {"libraries", format_known(driver.library_version)},
            {"directory", format_known(driver.library_directory)},
            {"cuda", format_known(driver.cuda_version)}});
  if (!driver.nvml_error.empty())
    log.error(component, "NVML does not answer", {{"err", driver.nvml_error}});
  for (const auto& gpu : machine.gpus) {
    log.info(component, "GPU",
             {{"index", gpu.index},
              {"uuid", format_known(gpu.uuid.text)},
              {"name", format_known(gpu.name)},
              {"pci", gpu.pci.nvml()},
              {"health", format_health(gpu.health)}});
  }
  for (const auto& node : machine.nodes)
    log.info(component, "device node", {{"path", node.path}, {"why", node.why}});
  for (const auto& file : machine.files)
    log.info(component, "driver file", {{"path", file.path}, {"why", file.why}});
  for (const auto& d : machine.differences) {
    log.error(component, "the kernel and NVML disagree",
              {{"what", d.what}, {"kernel", d.kernel}, {"nvml", d.nvml}});
  }
  for (const auto& note : machine.notes)
    log.error(component, "cannot read a part of the machine", {{"why", note}});
}

}  // namespace gantry::cli
