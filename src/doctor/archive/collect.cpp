// SPDX-License-Identifier: Apache-2.0
#include "doctor/archive/collect.hpp"

#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"
#include "doctor/archive/secrets.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>

namespace gantry::doctor {
namespace {

struct Source {
  std::string_view directory;
  std::string_view names;  // a pattern
  int depth = 1;           // 1: only the directory itself
};

constexpr std::array kSources{
    // Gantry's own
    Source{"/etc/gantry", "*.toml"},
    Source{"/run/gantry", "*.json"},
    Source{"/run/gantry", "*.log"},
    Source{"/run/gantry/grants", "*.json", 3},
    Source{"/run/gantry/shares", "*.json", 2},
    Source{"/run/gantry/containers", "*.json"},
    Source{"/var/lib/gantry", "*.json"},
    Source{"/var/lib/gantry", "ledger"},
    Source{"/var/lib/gantry/engines", "*", 2},
    Source{"/etc/systemd/system", "gantry*"},
    // Container engines
    Source{"/etc/nvidia-container-runtime", "config.toml"},
    Source{"/etc/docker", "daemon.json"},
    Source{"/etc/containerd", "*.toml", 2},
    Source{"/etc/crio", "crio.conf"},
    Source{"/etc/crio/crio.conf.d", "*", 2},  // CRI-O reads every file
    Source{"/etc/containers", "containers.conf"},
    Source{"/etc/containers/containers.conf.d", "*.conf"},
    Source{"/etc/containers/oci/hooks.d", "*.json"},
    Source{"/usr/share/containers/oci/hooks.d", "*.json"},
    Source{"/etc/cdi", "*"},
    Source{"/var/run/cdi", "*"},
    // The kubelet
    Source{"/var/lib/kubelet", "config.yaml"},
    Source{"/var/lib/kubelet", "kubeadm-flags.env"},
    Source{"/var/lib/kubelet/device-plugins", "kubelet_internal_checkpoint"},
    // The driver
    Source{"/etc/modprobe.d", "*nvidia*"},
    Source{"/etc/modprobe.d", "*nouveau*"},
    Source{"/proc/driver/nvidia", "version"},
    Source{"/proc/driver/nvidia", "params"},
    Source{"/proc/driver/nvidia", "registry"},
    Source{"/proc/driver/nvidia/gpus", "information", 2},
    Source{"/var/log", "nvidia-*.log"},
    Source{"/var/log", "fabricmanager.log"},
    Source{"/var/log", "gantry*.log"},
    // The system
    Source{"/etc", "os-release"},
    Source{"/proc", "version"},
    Source{"/proc", "cmdline"},
    Source{"/proc", "devices"},
    Source{"/proc", "modules"},
    Source{"/proc", "meminfo"},
};

constexpr std::string_view kDriverGpus = "/proc/driver/nvidia/gpus/";
constexpr std::chrono::seconds kDriverAnswers{10};

class Collector {
 public:
  explicit Collector(const sys::Host& host) : host_(host) {}

  CollectedFiles run() {
    for (const auto& source : kSources) {
      collect(std::string(source.directory), source.names, source.depth);
    }
    return std::move(out_);
  }

 private:
  void collect(const std::string& directory, std::string_view names, int depth) {
    const auto entries = host_.list(directory);
    if (!entries.ok()) return note_error(directory, entries.error());
    for (const auto& name : *entries) {
      if (depth <= 1 && !glob_match(names, name)) continue;
      const auto path = fmt::format("{}/{}", directory, name);
      const auto info = host_.info(path);
      if (!info.ok()) {
        if (glob_match(names, name)) note_error(path, info.error());
        continue;
      }
      if (info->kind == sys::FileKind::Directory && depth > 1) collect(path, names, depth - 1);
      if (info->kind == sys::FileKind::Regular && glob_match(names, name)) add(path);
    }
  }

  void add(const std::string& path) {
    if (out_.files.size() >= kMostFiles || bytes_ >= kMaxArchiveBytes) {
      out_.notes.push_back(fmt::format("{}: left out, the report is large enough", path));
      return;
    }
    auto text = path.starts_with(kDriverGpus) ? read_of_driver(path) : read_end(path);
    if (!text.ok()) return note_error(path, text.error());
    bytes_ += text->size();
    out_.files.push_back({path.substr(1), remove_secrets(*text)});
  }

  // The driver may keep a reader of its files waiting for ever; then it is not asked again.
  Result<std::string> read_of_driver(const std::string& path) {
    if (driver_is_silent_) return Error(Errc::Timeout, "the driver does not answer");
    auto text = sys::read_with_deadline(host_, path, kDriverAnswers);
    driver_is_silent_ = !text.ok() && text.error().code() == Errc::Timeout;
    return text;
  }

  // At most kMostFileBytes from the end of the file.
  Result<std::string> read_end(const std::string& path) {
    GANTRY_TRY(const auto fd, host_.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return Error::sys(errno, "fstat");
    if (!S_ISREG(info.st_mode)) return Error(Errc::Invalid, "not a regular file");
    const auto size = static_cast<std::size_t>(info.st_size);  // 0 for a file of /proc
    if (size > kMostFileBytes) {
      if (::lseek(fd.get(), -static_cast<off_t>(kMostFileBytes), SEEK_END) < 0) {
        return Error::sys(errno, "lseek");
      }
      out_.notes.push_back(
          fmt::format("{}: only the last {} of {} KiB", path, kMostFileBytes >> 10U, size >> 10U));
    }
    std::string text(kMostFileBytes, '\0');
    std::size_t used = 0;
    while (used < text.size()) {
      const auto got = ::read(fd.get(), text.data() + used, text.size() - used);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::sys(errno, "read");
      if (got == 0) break;
      used += static_cast<std::size_t>(got);
    }
    text.resize(used);
    return text;
  }

  void note_error(const std::string& path, const Error& error) {
    if (error.code() == Errc::NotFound) return;
    out_.denied = out_.denied || error.code() == Errc::Denied;
    out_.notes.push_back(error.code() == Errc::Denied
                             ? fmt::format("{}: only root may read it", path)
                             : fmt::format("{}: {}", path, error.text()));
  }

  const sys::Host& host_;
  CollectedFiles out_;
  std::size_t bytes_ = 0;
  bool driver_is_silent_ = false;
};

}  // namespace

CollectedFiles collect_files(const sys::Host& host) {
  return Collector(host).run();
}

}  // namespace gantry::doctor
