// SPDX-License-Identifier: Apache-2.0
// Steps about the modules in the kernel and the nodes of the driver.
#include "base/core/text.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/device_nodes.hpp"
#include "install/driver_setup/module_options.hpp"
#include "install/driver_setup/setup_work_internal.hpp"
#include "install/kernel_module/module_dependencies.hpp"
#include "install/kernel_module/module_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gantry::driver_setup {
namespace {

using kernel_module::LoadedModule;

constexpr std::string_view kFirmwareParameter = "/sys/module/firmware_class/parameters/path";
constexpr std::array kLoadedModules{"nvidia", "nvidia-uvm", "nvidia-modeset"};

std::string loaded_version(const sys::Host& host) {
  const auto version = procfs::read_version(host);
  return version.ok() ? version->version : "";
}

// Names of the modules that an installation loads, if this version has them.
std::vector<std::string> wanted_modules(const sys::Host& host, const std::string& directory) {
  std::vector<std::string> names;
  for (const auto* name : kLoadedModules) {
    if (host.exists(fmt::format("{}/{}.ko", directory, name))) names.emplace_back(name);
  }
  return names;
}

Status load_file(SetupWork& work, const std::string& path, const std::string& options) {
  auto loaded = work.effects.load_module(path, options);
  if (!loaded.ok() && loaded.error().code() == Errc::Exists) return {};
  return loaded;
}

ProgramCall modprobe(std::string_view name) {
  return {.words = {{.text = "modprobe"}, {.text = std::string(name)}}, .needs = {}};
}

// Many distributions pack the kernel's own modules, which kernels before 5.17 cannot unpack.
Status load_kernels_own(SetupWork& work, const std::string& path) {
  auto loaded = load_file(work, path, "");
  if (loaded.ok() || loaded.error().code() != Errc::Unsupported) return loaded;
  const auto file = base_name(path);
  GANTRY_CHECK(work.effects.run(modprobe(file.substr(0, file.find(".ko")))));
  return {};
}

// A module of this version beside those of another one crashes, or says nothing but numbers.
Status check_none_of_other_version(const SetupWork& work, const InstallRecord& record) {
  const auto loaded = loaded_version(work.host);
  if (loaded.empty() || loaded == record.version) return {};
  return Error(Errc::Busy, fmt::format("the kernel has the driver {} loaded, and {} is installed",
                                       loaded, describe(record)))
      .advise(
          "find out what loads it (ls /etc/modules-load.d /etc/modprobe.d), then sudo reboot; or "
          "run `gantry driver install` again, which unloads it");
}

// Displays need it; a kernel for the cloud may lack what it is built on.
bool can_do_without(std::string_view module) {
  return module == "nvidia-modeset";
}

// Modules of the kernel itself that a module of the driver needs: drm, i2c-core, ipmi.
Status load_dependencies(SetupWork& work, const std::string& path, const std::string& release) {
  GANTRY_TRY(const auto file, kernel_module::read_module(work.host, path));
  if (file.depends.empty()) return {};
  GANTRY_TRY(const auto loaded, kernel_module::read_loaded_modules(work.host));
  GANTRY_TRY(const auto index, kernel_module::read_module_index(work.host, release));
  GANTRY_TRY(const auto needed, kernel_module::files_to_load_first(file, index, loaded, release));
  std::vector<std::string> names;
  for (const auto& one : needed) names.push_back(kernels_module_name(one));
  GANTRY_CHECK(note_kernels_own(work, names));
  for (const auto& one : needed) GANTRY_CHECK(load_kernels_own(work, one));
  return {};
}

Status load_one(SetupWork& work, const std::string& directory, const std::string& name,
                const std::string& release) {
  return load_with_dependencies(work, fmt::format("{}/{}.ko", directory, name),
                                module_options(work.host, name), release);
}

Status load_placed(SetupWork& work, const InstallRecord& record, const std::string& release) {
  const auto directory = Layout(record.directory).modules(record.name, release);
  const auto wanted = wanted_modules(work.host, directory);
  if (wanted.empty()) {
    return Error(Errc::NotFound, fmt::format("there are no modules of the driver {} for the kernel "
                                             "{}",
                                             describe(record), release))
        .advise(fmt::format("sudo gantry driver build --kernel {}", release));
  }
  GANTRY_CHECK(check_trusted_place(work.host, directory));
  GANTRY_CHECK(check_none_of_other_version(work, record));
  GANTRY_TRY(const auto loaded, kernel_module::read_loaded_modules(work.host));
  for (const auto& name : kernel_module::load_order(wanted, loaded)) {
    auto done = load_one(work, directory, name, release);
    if (done.ok()) continue;
    if (!can_do_without(name)) return done;
    work.note(
        fmt::format("{} is not loaded, so displays do not work: {}", name, done.error().cause()));
  }
  return {};
}

// Packages put their modules where modprobe finds them, with the distribution's own rules.
Status load_packaged(SetupWork& work) {
  for (const auto* name : kLoadedModules) {
    auto loaded = work.effects.run(modprobe(name));
    if (loaded.ok()) continue;
    if (name != kLoadedModules.front()) {  // a driver without displays may not have them
      work.note(fmt::format("{} is not loaded: {}", name, loaded.error().cause()));
      continue;
    }
    return std::move(loaded).error();
  }
  return {};
}

Error cannot_unload(const kernel_module::UnloadOrder& order) {
  std::vector<std::string> reasons;
  for (const auto& blocker : order.blockers) reasons.push_back(kernel_module::describe(blocker));
  return Error(Errc::Busy,
               fmt::format("the driver cannot be unloaded: {}", fmt::join(reasons, "; ")))
      .advise("end what uses it, or reboot and run the same command again");
}

Status unload_all(SetupWork& work) {
  GANTRY_TRY(const auto loaded, kernel_module::read_loaded_modules(work.host));
  const auto order = kernel_module::unload_order(loaded);
  if (!order.possible()) return cannot_unload(order);
  for (const auto& name : order.modules) {
    auto unloaded = work.effects.unload_module(name);
    if (!unloaded.ok() && unloaded.error().code() != Errc::NotFound) return unloaded;
  }
  return {};
}

// Of GPUDirect and displays: nothing here loads them again.
void note_modules_left_out(SetupWork& work) {
  const auto loaded = kernel_module::read_loaded_modules(work.host);
  if (!loaded.ok() || work.journal.command != "install") return;
  for (const auto& module : *loaded) {
    const bool ours = std::any_of(kLoadedModules.begin(), kLoadedModules.end(), [&](auto* name) {
      return kernel_module::module_name(name) == module.name;
    });
    if (ours || !kernel_module::is_driver_module(module.name)) continue;
    work.note(fmt::format(
        "the module {0} was loaded and is not any more; if something needs it, build it "
        "for the new driver, then: sudo modprobe {0}",
        module.name));
  }
}

std::string char_link(const sys::FileInfo& node) {
  return fmt::format("/dev/char/{}:{}", node.major, node.minor);
}

// False if the old driver looks the same.
bool has_target_loaded(const SetupWork& work) {
  const auto loaded = procfs::read_version(work.host);
  const auto& target = work.target();
  if (!loaded.ok() || loaded->version != target.version) return false;
  const bool open = loaded->flavour == model::ModuleFlavour::Open;
  if (target.flavour && open != (*target.flavour == preflight::Flavour::Open)) return false;
  return work.before() == nullptr || work.before()->version != target.version;
}

std::string running_release(const SetupWork& work) {
  if (work.facts != nullptr) return work.facts->kernel.release;
  const auto kernel = kernel_module::read_running_kernel(work.host);
  return kernel.ok() ? kernel->release : work.journal.kernel;
}

// The firmware of a version whose kernel looks for it at this path.
Status write_firmware_path(SetupWork& work, const std::string& path) {
  if (work.host.read_value(kFirmwareParameter) == path) return {};
  return work.effects.write_value(std::string(kFirmwareParameter), path);
}

}  // namespace

Status load_with_dependencies(SetupWork& work, const std::string& path, const std::string& options,
                              const std::string& release) {
  GANTRY_CHECK(load_dependencies(work, path, release));
  return load_file(work, path, options);
}

Status unload_modules(SetupWork& work) {
  // Already the new one, in a run that was killed.
  if (work.journal.command == "install" && has_target_loaded(work)) return {};
  if (!work.journal.unloaded && !loaded_version(work.host).empty()) {
    work.journal.unloaded = true;
    if (work.journal.command == "install") note_foreign_modules(work, running_release(work));
    GANTRY_CHECK(save_journal(work));
  }
  note_modules_left_out(work);
  GANTRY_CHECK(unload_all(work));
  if (work.journal.command == "remove") unload_kernels_own(work, work.target().kernel_modules);
  return {};
}

// Also when nvidia is still there: it refused after nvidia_uvm was unloaded.
Status undo_unload_modules(SetupWork& work) {
  const auto* before = work.before();
  if (!work.journal.unloaded) return {};
  if (before == nullptr) return load_foreign_modules(work, running_release(work));
  const bool refused = loaded_version(work.host) == before->version;
  auto loaded = load_modules(work, *before);
  const bool none_of_ours = !loaded.ok() && loaded.error().code() == Errc::NotFound;
  if (refused && none_of_ours) return {};
  GANTRY_CHECK(loaded);
  return make_nodes(work);
}

// The kernel looks for firmware in one directory besides /lib/firmware, which may be read-only.
Status set_firmware_path(SetupWork& work) {
  auto& target = work.journal.target;
  if (!work.host.exists(work.layout.version(target.name) + "/firmware")) return {};
  const auto old = work.host.read_value(kFirmwareParameter);
  if (!old) {
    work.note(
        "this kernel has no setting for the directory of firmware: a driver that needs its "
        "firmware file will not start");
    return {};
  }
  const auto ours = work.layout.firmware();
  if (*old == ours) return {};
  if (!old->empty()) {
    const auto link = fmt::format("{}/nvidia/{}", *old, target.version);
    return create_link(work, link, fmt::format("{}/nvidia/{}", ours, target.version));
  }
  target.set_firmware_path = true;
  GANTRY_CHECK(save_journal(work));
  return write_firmware_path(work, ours);
}

Status undo_firmware_path(SetupWork& work) {
  if (!work.target().set_firmware_path) return {};
  const auto* before = work.before();
  if (before != nullptr && before->set_firmware_path) return {};  // it is the same directory
  return write_firmware_path(work, work.target().firmware_path_before);
}

Status load_modules(SetupWork& work, const InstallRecord& record) {
  if (!record.has_files()) {
    GANTRY_TRY(const auto before, kernel_module::read_loaded_modules(work.host));
    auto loaded = load_packaged(work);
    GANTRY_CHECK(note_loaded_since(work, before));
    return loaded;
  }
  return load_placed(work, record, running_release(work));
}

Status undo_load_modules(SetupWork& work) {
  const auto loaded = loaded_version(work.host);
  const auto* before = work.before();
  // The same version may be the old one, built in another way.
  const bool is_old =
      before != nullptr && loaded == before->version && before->version != work.target().version;
  if (is_old) return {};
  GANTRY_CHECK(unload_all(work));
  auto new_ones = work.target().kernel_modules;
  std::erase_if(new_ones, [&](const std::string& name) {
    return before != nullptr &&
           std::find(before->kernel_modules.begin(), before->kernel_modules.end(), name) !=
               before->kernel_modules.end();
  });
  unload_kernels_own(work, std::move(new_ones));
  return before == nullptr ? remove_nodes(work) : Status();
}

// systemd finds the nodes of a unit's containers by these links; without them a daemon-reload
// takes the GPUs away.
Status make_nodes(SetupWork& work) {
  for (const auto& node : nodes_to_make(work.host))
    GANTRY_CHECK(work.effects.make_node(node.path, node.node));
  for (const auto& node : wanted_nodes(work.host)) {
    const auto link = char_link(node.node);
    const auto target = fmt::format("..{}", node.path.substr(std::string_view("/dev").size()));
    if (work.host.link(link).value_or("") == target) continue;
    GANTRY_CHECK(work.effects.make_directory("/dev/char"));
    GANTRY_CHECK(work.effects.make_link(link, target));
  }
  return {};
}

Status remove_nodes(SetupWork& work) {
  if (!loaded_version(work.host).empty()) return {};
  for (const auto& path : present_driver_nodes(work.host)) {
    const auto node = work.host.device(path);
    if (node.ok()) GANTRY_CHECK(work.effects.remove(char_link(*node)));
    GANTRY_CHECK(work.effects.remove(path));
  }
  // Without udev /dev/char has our links only.
  for (const auto* empty : {"/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels", "/dev/char"})
    GANTRY_CHECK(work.effects.remove_directory(empty));
  return {};
}

}  // namespace gantry::driver_setup
