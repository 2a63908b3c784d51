// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/facts.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "doctor/engine/kernel_log.hpp"
#include "install/preflight/modprobe_config.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

namespace gantry::doctor {
namespace {

constexpr std::chrono::seconds kProgramDeadline{5};

std::optional<Process> read_process(const sys::Host& host, std::string_view name) {
  const auto pid = parse_u64(name);
  if (!pid || *pid > 0xFFFFFFFFULL) return std::nullopt;
  const auto comm = host.read_value(fmt::format("/proc/{}/comm", name));
  if (!comm) return std::nullopt;
  Process process{.pid = static_cast<unsigned>(*pid), .name = *comm};
  // "PID (comm) S ...": comm may contain any character, so we look for the last parenthesis.
  const auto stat = host.read_value(fmt::format("/proc/{}/stat", name)).value_or("");
  const auto end = stat.rfind(')');
  if (end != std::string::npos && end + 2 < stat.size()) process.state = stat[end + 2];
  return process;
}

// Octal escapes of /proc/mounts: \040 is a space.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' ? parse_u64(text.substr(i + 1, 3), 8) : std::nullopt;
    if (code && text.size() >= i + 4 && *code < 256) {
      out += static_cast<char>(*code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<MountEntry> parse_mounts(std::string_view text) {
  std::vector<MountEntry> mounts;
  for (auto line : lines(text)) {
    const auto f = split(line, ' ');
    if (f.size() < 4) continue;
    MountEntry mount{unescape(f[0]), unescape(f[1]), std::string(f[2]), {}};
    for (auto option : split(f[3], ',')) mount.options.emplace_back(option);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<std::uint64_t> free_bytes_of(const sys::Host& host, const std::string& path) {
  const auto fd = host.open(path, O_PATH);
  struct statvfs info {};
  if (!fd.ok() || ::fstatvfs(fd->get(), &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

std::vector<Evidence> read_modprobe_lines(const sys::Host& host) {
  std::vector<Evidence> found;
  for (auto& line : preflight::read_modprobe_lines(host))
    found.push_back({std::move(line.path), std::move(line.text)});
  return found;
}

std::optional<std::string> run_for_output(const std::vector<std::string>& argv) {
  auto run = sys::run_command(argv, kProgramDeadline);
  if (!run.ok() || run->status != 0) return std::nullopt;
  return std::move(run->output);
}

}  // namespace

bool MountEntry::has(std::string_view option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

Caller this_process() {
  Caller caller{.uid = ::geteuid(), .groups = {::getegid()}, .library_path = ""};
  std::array<gid_t, 1024> groups{};
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  for (int i = 0; i < count; ++i) caller.groups.push_back(groups[static_cast<std::size_t>(i)]);
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) caller.library_path = path;
  return caller;
}

FactSources live_sources(const sys::Host& host) {
  FactSources sources{.caller = this_process(),
                      .kernel_log = std::nullopt,
                      .this_machine = true,
                      .free_bytes = free_bytes_of};
  // The programs of another root, even of this machine, may not work outside it.
  if (host.is_live()) sources.program_output = run_for_output;
  return sources;
}

Facts::Facts(const sys::Host& host, const model::Inventory& inventory, const FactSources& sources)
    : host_(host), inventory_(inventory), sources_(sources), guest_(detect_guest(host)) {}

std::optional<std::string> Facts::program_output(const std::vector<std::string>& argv) const {
  return sources_.program_output ? sources_.program_output(argv) : std::nullopt;
}

bool Facts::denied(std::string_view path) const {
  const auto fd = host_.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return !fd.ok() && fd.error().code() == Errc::Denied;
}

Evidence Facts::read(std::string_view path) const {
  auto value = host_.read_value(path);
  if (value && value->size() > 200) value = value->substr(0, 200) + "...";
  return {std::string(path), value.value_or("(absent)")};
}

const std::optional<std::string>& Facts::kernel_log() const {
  if (!kernel_log_) {
    kernel_log_.emplace(sources_.kernel_log ? sources_.kernel_log : read_kernel_log(host_));
  }
  return *kernel_log_;
}

std::vector<std::string> Facts::log_lines_with(std::string_view part) const {
  std::vector<std::string> found;
  if (!kernel_log()) return found;
  for (auto line : lines(*kernel_log())) {
    if (contains(line, part)) found.emplace_back(line);
  }
  return found;
}

const std::vector<Process>& Facts::processes() const {
  if (processes_) return *processes_;
  processes_.emplace();
  const auto names = host_.list("/proc");
  if (!names.ok()) return *processes_;
  for (const auto& name : *names) {
    if (auto process = read_process(host_, name)) processes_->push_back(std::move(*process));
  }
  return *processes_;
}

bool Facts::running(std::string_view program) const {
  const auto comm = program.substr(0, 15);
  return std::any_of(processes().begin(), processes().end(),
                     [&](const Process& process) { return process.name == comm; });
}

const std::vector<MountEntry>& Facts::mounts() const {
  if (!mounts_) mounts_ = parse_mounts(host_.read("/proc/mounts").value_or(""));
  return *mounts_;
}

const MountEntry* Facts::mount_of(std::string_view path) const {
  const MountEntry* best = nullptr;
  for (const auto& mount : mounts()) {
    const bool covers = mount.point == "/" || path == mount.point ||
                        (path.starts_with(mount.point) && path[mount.point.size()] == '/');
    // If two mounts have the same mount point, the later one hides the earlier one.
    if (covers && (best == nullptr || mount.point.size() >= best->point.size())) best = &mount;
  }
  return best;
}

std::optional<std::uint64_t> Facts::free_bytes(const std::string& path) const {
  return sources_.free_bytes ? sources_.free_bytes(host_, path) : std::nullopt;
}

std::string Facts::kernel_release() const {
  return value("/proc/sys/kernel/osrelease").value_or("");
}

bool Facts::module_loaded(std::string_view name) const {
  const auto directory = fmt::format("/sys/module/{}", name);
  if (!host_.exists(directory)) return false;
  return value(directory + "/initstate").value_or("live") == "live";
}

// Does not read refcnt: a kernel without module unloading has no such file.
bool Facts::driver_loaded() const {
  return module_loaded("nvidia") && host_.exists("/proc/driver/nvidia/version");
}

std::optional<std::uint32_t> Facts::major(std::string_view name) const {
  const auto text = host_.read("/proc/devices");
  if (!text.ok()) return std::nullopt;
  for (auto line : lines(*text)) {
    line = trim(line);
    if (line.starts_with("Block devices")) break;
    const auto space = line.find(' ');
    if (space == std::string_view::npos || trim(line.substr(space)) != name) continue;
    const auto number = parse_u64(line.substr(0, space));
    if (number && *number < 4096) return static_cast<std::uint32_t>(*number);
  }
  return std::nullopt;
}

const std::vector<health::ComputeObstacle>& Facts::compute_obstacles() const {
  if (!obstacles_) {
    const health::ComputeFacts facts{.uvm_loaded = major("nvidia-uvm").has_value(),
                                     .fabric_manager_runs = running("nv-fabricmanager")};
    obstacles_ = health::find_compute_obstacles(inventory_, facts);
  }
  return *obstacles_;
}

std::optional<std::string> Facts::param(std::string_view name) const {
  if (!params_) {
    params_.emplace();
    const auto text = host_.read("/proc/driver/nvidia/params").value_or("");
    for (auto line : lines(text)) {
      const auto colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      params_->emplace(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
    }
  }
  const auto found = params_->find(name);
  if (found == params_->end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> Facts::param_number(std::string_view name) const {
  const auto text = param(name);
  return text ? parse_u64(*text) : std::nullopt;
}

bool Facts::installed(std::string_view program) const {
  constexpr std::array kDirectories{"/usr/bin", "/usr/sbin",      "/bin",
                                    "/sbin",    "/usr/local/bin", "/usr/local/sbin"};
  return std::any_of(kDirectories.begin(), kDirectories.end(), [&](std::string_view directory) {
    return host_.exists(fmt::format("{}/{}", directory, program));
  });
}

std::string Facts::group_name(unsigned gid) const {
  const auto text = host_.read("/etc/group").value_or("");
  for (auto line : lines(text)) {
    const auto f = split(line, ':');
    if (f.size() >= 3 && parse_u64(f[2]) == gid) return std::string(f[0]);
  }
  return fmt::to_string(gid);
}

const std::vector<Evidence>& Facts::modprobe_lines() const {
  if (!modprobe_lines_) modprobe_lines_ = read_modprobe_lines(host_);
  return *modprobe_lines_;
}

std::vector<model::PciFunction> Facts::gpu_functions() const {
  std::vector<model::PciFunction> gpus;
  for (const auto& function : inventory_.functions) {
    if (function.is_gpu() && !host_.exists(pci_path(function.address) + "/physfn")) {
      gpus.push_back(function);
    }
  }
  return gpus;
}

std::vector<model::PciFunction> Facts::nvswitches() const {
  std::vector<model::PciFunction> found;
  for (const auto& function : inventory_.functions) {
    if (function.is_nvswitch()) found.push_back(function);
  }
  return found;
}

std::vector<int> Facts::online_numa_nodes() const {
  return parse_number_list(value("/sys/devices/system/node/online").value_or(""));
}

std::string pci_path(const model::PciAddress& address) {
  return "/sys/bus/pci/devices/" + address.sysfs();
}

std::vector<int> parse_number_list(std::string_view text) {
  constexpr std::size_t kMaxNumbers = 4096;
  std::vector<int> numbers;
  for (auto part : split(trim(text), ',')) {
    const auto dash = part.find('-');
    const auto first = parse_u64(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_u64(part.substr(dash + 1));
    if (!first || !last || *last > 65535) continue;
    for (auto n = *first; n <= *last && numbers.size() < kMaxNumbers; ++n) {
      numbers.push_back(static_cast<int>(n));
    }
  }
  return numbers;
}

}  // namespace gantry::doctor
