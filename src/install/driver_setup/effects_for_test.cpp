// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/effects_for_test.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/openpgp_key.hpp"
#include "install/driver_package/run_header.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/kernel_module/module_image_for_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace gantry::driver_setup {
namespace {

namespace fs = std::filesystem;

std::string word(const ProgramCall& call, std::size_t index) {
  if (index >= call.words.size()) return "";
  return call.words[index].text + call.words[index].path;
}

std::string manifest_of(const std::string& version, bool has_persistence_daemon) {
  std::string text = fmt::format(
      "NVIDIA Accelerated Graphics Driver for Linux-x86_64\n{}\nnvidia-installer\n"
      "nvidia nvidia-uvm nvidia-modeset\n0\nkernel\n0\n0\n",
      version);
  text += fmt::format("libcuda.so.{} 0755 CUDA_LIB NATIVE / MODULE:gpgpu\n", version);
  text +=
      fmt::format("libcuda.so.1 0000 CUDA_SYMLINK NATIVE / libcuda.so.{} MODULE:gpgpu\n", version);
  text += "nvidia-smi 0755 UTILITY_BINARY MODULE:nvml\n";
  if (has_persistence_daemon) text += "nvidia-persistenced 0755 UTILITY_BINARY MODULE:nvml\n";
  text += "nvidia-installer 0755 INSTALLER_BINARY MODULE:installer\n";
  for (const auto* directory : {"kernel", "kernel-open"})
    text += fmt::format("{}/Kbuild 0644 KERNEL_MODULE_SRC INHERIT_PATH_DEPTH:1 MODULE:resman\n",
                        directory);
  text += "firmware/gsp_tu10x.bin 0644 FIRMWARE\n";
  return text;
}

}  // namespace

Status TestEffects::gated(const std::string& entry, const std::function<Status()>& act,
                          const std::function<void()>& halfway) {
  auto& script = machine_.script;
  script.log.push_back(entry);
  const bool now = ++script.count == script.fault_at;
  if (now && script.fault == Fault::Fail) return Error::sys(script.err, entry);
  if (script.rule) GANTRY_CHECK(script.rule(entry));
  auto status = act();
  if (now && script.fault == Fault::KillHalfway) {
    if (halfway) halfway();
    throw KilledForTest{};
  }
  if (now && script.fault == Fault::KillAfter) throw KilledForTest{};
  return status;
}

void TestEffects::cut(const std::string& path) {
  const auto real = machine_.tree().path(path);
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(real))) return;
  // Its own copy: what shares the content is not cut.
  const auto content = host().read(path).value_or("");
  fs::remove(real, ignored);
  machine_.tree().file(path, content.substr(0, content.size() / 2));
}

void TestEffects::write(const std::string& path, std::string_view content) {
  machine_.tree().file(path, content);
  machine_.unsynced_.insert(path);
}

bool TestEffects::dies_halfway() const {
  const auto& script = machine_.script;
  return script.count == script.fault_at && script.fault == Fault::KillHalfway;
}

// Durable and whole, as sys::replace_file is: halfway there is a temporary file.
Status TestEffects::save(const std::string& path, std::string_view content, unsigned mode) {
  return gated(
      "save " + path,
      [&] { return dies_halfway() ? Status() : HostFiles::save(path, content, mode); },
      [&] {
        machine_.tree().file(sys::temporary_of(path), content.substr(0, content.size() / 2));
      });
}

Status TestEffects::copy(const std::string& from, const std::string& to, unsigned mode) {
  return gated(
      fmt::format("copy {} {}", from, to),
      [&] {
        machine_.unsynced_.insert(to);
        return HostFiles::copy(from, to, mode);
      },
      [&] { cut(to); });
}

Status TestEffects::make_directory(const std::string& path) {
  return gated("mkdir " + path, [&] { return HostFiles::make_directory(path); });
}

Status TestEffects::make_link(const std::string& path, const std::string& target) {
  return gated(
      fmt::format("link {} {}", path, target),
      [&] { return dies_halfway() ? Status() : HostFiles::make_link(path, target); },
      [&] { machine_.tree().link(sys::temporary_of(path), target); });
}

Status TestEffects::rename(const std::string& from, const std::string& to) {
  return gated(fmt::format("rename {} {}", from, to), [&]() -> Status {
    GANTRY_CHECK(HostFiles::rename(from, to));
    std::set<std::string> moved;
    for (const auto& path : machine_.unsynced_)
      moved.insert(path.starts_with(from + "/") ? to + path.substr(from.size()) : path);
    machine_.unsynced_ = std::move(moved);
    return {};
  });
}

Status TestEffects::remove(const std::string& path) {
  return gated("remove " + path, [&] { return HostFiles::remove(path); });
}

Status TestEffects::remove_directory(const std::string& path) {
  return gated("rmdir " + path, [&] { return HostFiles::remove_directory(path); });
}

// Halfway, some of it is gone.
Status TestEffects::remove_tree(const std::string& path) {
  return gated(
      "rmtree " + path,
      [&]() -> Status { return dies_halfway() ? Status() : HostFiles::remove_tree(path); },
      [&] {
        const auto names = host().list(path);
        if (names.ok() && !names->empty())
          fs::remove_all(machine_.tree().path(fmt::format("{}/{}", path, names->back())));
      });
}

Status TestEffects::sync(const std::string& path) {
  return gated("sync " + path, [&]() -> Status {
    GANTRY_CHECK(HostFiles::sync(path));
    machine_.unsynced_.clear();
    return {};
  });
}

Status TestEffects::load_module(const std::string& path, const std::string& options) {
  return gated(
      fmt::format("load {}{}{}", path, options.empty() ? "" : " ", options), [&]() -> Status {
        GANTRY_TRY(const auto file, kernel_module::read_module(host(), path));
        for (const auto& module : machine_.loaded_) {
          if (module.name == file.name) return Error::sys(EEXIST, "finit_module");
          if (module.version != file.version) return Error::sys(EINVAL, "finit_module");
        }
        machine_.loaded_.push_back(
            {.name = file.name, .version = file.version, .open = file.license != "NVIDIA"});
        machine_.write_proc();
        return {};
      });
}

Status TestEffects::unload_module(const std::string& name) {
  return gated("unload " + name, [&]() -> Status {
    auto& loaded = machine_.loaded_;
    const bool used = std::any_of(loaded.begin(), loaded.end(), [](const auto& module) {
      return module.name.starts_with("nvidia_");
    });
    if (name == "nvidia" && used) return Error::sys(EWOULDBLOCK, "delete_module");
    if (!find_blocking_processes(host()).empty()) return Error::sys(EWOULDBLOCK, "delete_module");
    std::erase_if(loaded, [&](const auto& module) { return module.name == name; });
    machine_.write_proc();
    return {};
  });
}

Status TestEffects::write_value(const std::string& path, const std::string& value) {
  return gated(fmt::format("write {} {}", path, value), [&]() -> Status {
    machine_.tree().file(path, value);
    return {};
  });
}

Status TestEffects::make_node(const std::string& path, const sys::FileInfo& node) {
  return gated(fmt::format("mknod {} {}:{}", path, node.major, node.minor),
               [] { return Status(); });
}

Result<std::string> TestEffects::run(const ProgramCall& call) {
  std::string output;
  GANTRY_CHECK(gated(
      "run " + to_text(call), [&] { return run_program(call, output); },
      [&] {
        for (const auto& path : machine_.unsynced_) cut(path);
      }));
  return output;
}

Result<driver_package::Downloaded> TestEffects::download(
    const driver_package::DownloadRequest& request) {
  driver_package::Downloaded done{
      .path = fmt::format("{}/{}", request.directory, base_name(request.package.url))};
  auto status = gated("download " + request.package.url, [&]() -> Status {
    GANTRY_CHECK(driver_package::check_digest_source(request));
    const auto found = machine_.server.find(request.package.url);
    if (found == machine_.server.end()) return Error(Errc::NotFound, "404 Not Found");
    write(done.path, found->second);
    GANTRY_TRY(done.sha256, driver_package::sha256_of(host(), done.path));
    return {};
  });
  if (!status.ok()) return std::move(status).error();
  return done;
}

Status TestEffects::terminate(std::uint32_t pid) {
  return gated(fmt::format("terminate {}", pid), [&]() -> Status {
    if (machine_.processes_obey) machine_.tree().remove(fmt::format("proc/{}", pid));
    return {};
  });
}

Status TestEffects::refresh_cdi() {
  return gated("refresh CDI", [&]() -> Status {
    machine_.tree().file("var/run/cdi/nvidia.yaml", machine_.loaded());
    return {};
  });
}

Status TestEffects::remove_cdi() {
  return gated("remove CDI", [&]() -> Status {
    machine_.tree().remove("var/run/cdi").remove("var/run");
    return {};
  });
}

Status TestEffects::tell_agent() {
  return gated("tell agent", [&]() -> Status {
    ++machine_.told_agents;
    return {};
  });
}

void TestEffects::pause(std::chrono::milliseconds) {
  static_cast<void>(gated("pause", [] { return Status(); }).ok());
}

Status TestEffects::run_program(const ProgramCall& call, std::string& output) {
  const auto program = word(call, 0);
  if (program == "sh") return unpack(word(call, 1), word(call, 4));
  if (program == "cp") {
    fs::copy(machine_.tree().path(word(call, 2)), machine_.tree().path(word(call, 3)),
             fs::copy_options::recursive);
    return {};
  }
  if (program == "make") return make(call);
  if (program == "env" && word(call, 2).ends_with("/nvidia-smi")) return smi(word(call, 2), output);
  if (program == "nvidia-smi") return smi(program, output);
  if (program == "systemctl") return systemctl(word(call, 1), word(call, 2));
  if (program == "modprobe") return modprobe(word(call, 1));
  if (program == "ldconfig") return ldconfig();
  if (program == "env" && word(call, 2) == "apt-get") apt_get(call);
  if (program == "apt-get") output = simulate_apt(call);
  if (program == "dpkg-query") output = dpkg_query();
  if (program == "rpm") return rpm(call, output);
  return {};  // strip, sign-file, patch
}

Status TestEffects::unpack(const std::string& archive, const std::string& target) {
  GANTRY_TRY(const auto header, driver_package::read_run_header(host(), archive));
  const auto& version = header.version;
  const bool has_daemon = machine_.has_persistence_daemon;
  write(target + "/.manifest", manifest_of(version, has_daemon));
  if (has_daemon) write(target + "/nvidia-persistenced", "a daemon of " + version);
  write(fmt::format("{}/libcuda.so.{}", target, version), "a library of " + version);
  machine_.tree().link(target + "/libcuda.so.1", "libcuda.so." + version);
  write(target + "/nvidia-smi", "a program of " + version);
  write(target + "/nvidia-installer", "not needed");
  write(target + "/firmware/gsp_tu10x.bin", "firmware of " + version);
  write(target + "/kernel/Kbuild", version + " NVIDIA");
  write(target + "/kernel-open/Kbuild", version + " Dual MIT/GPL");
  return {};
}

Status TestEffects::make(const ProgramCall& call) {
  const auto directory = word(call, 2);
  GANTRY_TRY(const auto source, host().read(directory + "/Kbuild"));
  const auto space = source.find(' ');
  std::string release;
  for (std::size_t i = 3; i < call.words.size(); ++i) {
    const auto text = word(call, i);
    if (text.starts_with("KERNEL_UNAME=")) release = text.substr(text.find('=') + 1);
  }
  for (const auto* name : {"nvidia", "nvidia-uvm"}) {
    write(fmt::format("{}/{}.ko", directory, name),
          kernel_module::nvidia_module(kernel_module::module_name(name), release,
                                       source.substr(0, space), source.substr(space + 1)));
  }
  return {};
}

Status TestEffects::smi(const std::string& program, std::string& output) const {
  const auto library = host().read(program).value_or(machine_.package_version_);
  const auto version = library.substr(library.rfind(' ') + 1);
  if (machine_.smi_fails || machine_.loaded() != version)
    return Error(
        Errc::Internal,
        fmt::format("Failed to initialize NVML: Driver/library version mismatch ({} and {})",
                    machine_.loaded(), version));
  if (!machine_.smi_table.empty()) {
    output = machine_.smi_table;
    return {};
  }
  output =
      fmt::format("| NVIDIA-SMI {0}    Driver Version: {0}    CUDA Version: 13.0 |\n", version);
  return {};
}

Status TestEffects::systemctl(const std::string& verb, const std::string& unit) {
  auto& active = machine_.units_[unit];
  if (verb == "is-active") return active ? Status() : Status(Error(Errc::Internal, "inactive"));
  active = verb == "start" || verb == "restart";
  return {};
}

Status TestEffects::modprobe(const std::string& name) {
  if (machine_.package_version_.empty())
    return Error(Errc::Internal, fmt::format("modprobe: FATAL: Module {} not found", name));
  const auto module = kernel_module::module_name(name);
  for (const auto& other : machine_.loaded_) {
    if (other.name == module) return {};
  }
  if (module == "nvidia") {
    for (const auto& own : machine_.brings_modules) GANTRY_CHECK(modprobe(own));
  }
  machine_.loaded_.push_back({.name = module, .version = machine_.package_version_});
  machine_.write_proc();
  return {};
}

void TestEffects::apt_get(const ProgramCall& call) {
  auto& packages = machine_.packages;
  for (std::size_t i = 4; i < call.words.size(); ++i) {
    const auto name = word(call, i);
    if (name.starts_with('-')) continue;
    if (word(call, 3) == "install") {
      packages.insert(name);
      if (name == "nvidia-smi") packages.insert("libnvidia-ml1");
    }
    if (word(call, 3) == "purge") packages.erase(name);
  }
}

std::string TestEffects::simulate_apt(const ProgramCall& call) const {
  std::string output = machine_.packages.contains("old-thing") ? "Purg old-thing [1]\n" : "";
  for (std::size_t i = 4; i < call.words.size(); ++i) {
    output += fmt::format("Purg {} [1]\n", word(call, i));
    if (word(call, i) == "nvidia-smi") output += "Purg libnvidia-ml1 [1]\n";
  }
  return output;
}

std::string TestEffects::dpkg_query() const {
  std::string output = "deinstall nvidia-persistenced 1\n";
  for (const auto& name : machine_.packages)
    output += fmt::format("installed {} {}-1~deb12u1\n", name, machine_.package_version_);
  return output;
}

Status TestEffects::rpm(const ProgramCall& call, std::string& output) {
  auto& keys = machine_.rpm_keys;
  if (word(call, 1) == "-e") keys.erase(word(call, 2));
  if (word(call, 1) == "-qa" && word(call, 4).starts_with("gpg-pubkey"))
    for (const auto& [name, armor] : keys) output += fmt::format("{}\n{}\n", name, armor);
  if (word(call, 1) != "--import") return {};
  GANTRY_TRY(const auto text, host().read(word(call, 2)));
  GANTRY_TRY(const auto found, driver_package::parse_repository_keys(text));
  for (const auto& key : found)
    keys.emplace("gpg-pubkey-" + to_lower(key.fingerprint.substr(32)) + "-6affc8c8",
                 driver_package::to_armor(key.packets));
  return {};
}

// A cache of the libraries in the directories that the drop-ins name.
Status TestEffects::ldconfig() {
  loader::LdCache cache;
  for (const auto& name : host().list("/etc/ld.so.conf.d").value_or({})) {
    const auto directory = std::string(trim(host().read("/etc/ld.so.conf.d/" + name).value_or("")));
    for (const auto& library : host().list(directory).value_or({})) {
      if (library.ends_with(".so.1"))
        cache.entries.push_back(
            {.name = library, .path = fmt::format("{}/{}", directory, library)});
    }
  }
  GANTRY_TRY(const auto bytes, loader::serialize_ld_cache(cache));
  machine_.tree().file("etc/ld.so.cache", cache.entries.empty() ? "none\n" : bytes);
  return {};
}

}  // namespace gantry::driver_setup
