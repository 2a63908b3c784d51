// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/sys/deadline_call.hpp"
#include "install/kernel_module/kernel_log_internal.hpp"
#include "install/kernel_module/module_dependencies.hpp"
#include "install/kernel_module/module_loader.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::kernel_module {
namespace {

constexpr int kCompressedFile = 4;  // MODULE_INIT_COMPRESSED_FILE, since Linux 5.17
constexpr std::size_t kMaxOptions = 4096;
constexpr int kTriedModules = 8;
constexpr std::string_view kXzStart = "\xfd\x37zX";
constexpr std::string_view kZstdStart = "\x28\xb5\x2f\xfd";
constexpr std::string_view kGzipStart = "\x1f\x8b";

bool is_compressed(int fd) {
  std::array<char, 4> start{};
  if (::pread(fd, start.data(), start.size(), 0) != static_cast<ssize_t>(start.size()))
    return false;
  const std::string_view bytes(start.data(), start.size());
  return bytes == kXzStart || bytes == kZstdStart || bytes.starts_with(kGzipStart);
}

sys::CallOutcome finit_module(int file, const char* options, int flags) {
  const auto status = ::syscall(SYS_finit_module, file, options, flags);
  return {.value = status == 0 ? 0 : errno};
}

sys::CallOutcome delete_module(const char* name) {
  const auto status = ::syscall(SYS_delete_module, name, O_NONBLOCK);
  return {.value = status == 0 ? 0 : errno};
}

// Of a module that came with the kernel: there the kernel's own vermagic can be read.
std::string vermagic_of_kernel(const sys::Host& machine, std::string_view release) {
  const auto index = read_module_index(machine, release);
  if (!index.ok()) return "";
  int tried = 0;
  for (const auto& [name, entry] : index->modules) {
    if (!entry.path.starts_with("kernel/") || name.starts_with("nvidia")) continue;
    if (++tried > kTriedModules) break;
    const auto module =
        read_module(machine, fmt::format("/lib/modules/{}/{}", release, entry.path));
    if (module.ok()) return module->vermagic;
  }
  return "";
}

class LiveModuleLoader : public ModuleLoader {
 public:
  LiveModuleLoader(const sys::Host& machine, const LoadDeadlines& deadlines)
      : machine_(machine), deadlines_(deadlines) {}

  Status load(const sys::Host& host, const std::string& path, const std::string& options) override {
    const auto shown = host.outside(path);
    if (options.size() > kMaxOptions || options.find('\0') != std::string::npos)
      return Error(Errc::Invalid, fmt::format("the options of {} are too long", shown));
    GANTRY_TRY(const auto file,
               host.open(path, O_RDONLY | O_NONBLOCK).in(fmt::format("loading {}", shown)));
    const int flags = is_compressed(file.get()) ? kCompressedFile : 0;
    if (flags != 0 && !machine_.exists("/sys/module/compression"))
      return Error(explain_failed_load(EOPNOTSUPP, {.path = shown}));
    NewKernelLog log(machine_);
    GANTRY_TRY(
        const auto outcome,
        sys::call_with_deadline([&](int fd) { return finit_module(fd, options.c_str(), flags); },
                                file.get(), deadlines_.load, fmt::format("the load of {}", shown)));
    if (outcome.value == 0) return {};
    return explain_failed_load(outcome.value, describe_failure(host, path, log.read()));
  }

  Status unload(const std::string& name) override {
    const auto module = module_name(name);
    GANTRY_TRY(
        const auto outcome,
        sys::call_with_deadline([&](int) { return delete_module(module.c_str()); }, -1,
                                deadlines_.unload, fmt::format("the unload of module {}", module)));
    if (outcome.value == 0) return {};
    const auto loaded = read_loaded_modules(machine_);
    return explain_failed_unload(outcome.value, module,
                                 loaded.ok() ? *loaded : std::vector<LoadedModule>());
  }

 private:
  FailedLoad describe_failure(const sys::Host& host, const std::string& path,
                              std::vector<std::string> log) const {
    FailedLoad failed{.path = host.outside(path), .log = std::move(log)};
    auto file = read_module(host, path);
    if (file.ok()) failed.file = std::move(*file);
    const auto kernel = read_running_kernel(machine_);
    if (kernel.ok()) failed.release = kernel->release;
    failed.kernel_vermagic = vermagic_of_kernel(machine_, failed.release);
    failed.trust = read_module_trust(machine_);
    auto loaded = read_loaded_modules(machine_);
    if (loaded.ok()) failed.loaded = std::move(*loaded);
    failed.loading_disabled =
        machine_.read_value("/proc/sys/kernel/modules_disabled").value_or("0") == "1";
    return failed;
  }

  const sys::Host& machine_;
  LoadDeadlines deadlines_;
};

}  // namespace

std::unique_ptr<ModuleLoader> live_module_loader(const sys::Host& machine,
                                                 const LoadDeadlines& deadlines) {
  return std::make_unique<LiveModuleLoader>(machine, deadlines);
}

}  // namespace gantry::kernel_module
