// SPDX-License-Identifier: Apache-2.0
// Loads and unloads kernel modules by system call: no modprobe is needed.
#pragma once

#include "base/sys/host.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/kernel_module/module_trust.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

class ModuleLoader {
 public:
  virtual ~ModuleLoader() = default;
  // The file is found below the host's root. `options` as after `insmod FILE`:
  // "NVreg_ModifyDeviceFiles=0". Exists if it is loaded already.
  virtual Status load(const sys::Host& host, const std::string& path,
                      const std::string& options) = 0;
  // Busy if something uses it; it is never removed by force. NotFound if it is not loaded.
  virtual Status unload(const std::string& name) = 0;
};

// A GPU's module may need minutes to start a machine with eight of them.
inline constexpr std::chrono::seconds kLoadDeadline{180};
inline constexpr std::chrono::seconds kUnloadDeadline{60};

struct LoadDeadlines {
  std::chrono::milliseconds load = kLoadDeadline;
  std::chrono::milliseconds unload = kUnloadDeadline;
};

// Calls finit_module and delete_module in a process of its own. Timeout if the call did not return
// in time; it may still succeed later. `machine` is where /proc and /sys of the kernel are read for
// the sentences of errors; it must outlive the result.
std::unique_ptr<ModuleLoader> live_module_loader(const sys::Host& machine,
                                                 const LoadDeadlines& deadlines = {});

// What is known of a load that failed.
struct FailedLoad {
  std::string path;
  std::optional<ModuleFile> file;  // nullopt if it cannot be read
  std::string release;             // of the running kernel
  std::string kernel_vermagic;     // of a module that the kernel accepts; "" if unknown
  ModuleTrust trust;
  std::vector<LoadedModule> loaded;
  bool loading_disabled = false;  // kernel.modules_disabled=1
  std::vector<std::string> log;   // lines of the kernel log since the call
};

// The error with its sentence and remedy. Pure.
Error explain_failed_load(int err, const FailedLoad& failed);
Error explain_failed_unload(int err, std::string_view name,
                            const std::vector<LoadedModule>& loaded);

}  // namespace gantry::kernel_module
