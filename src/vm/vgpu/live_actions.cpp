// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/live_actions.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/deadline_write.hpp"
#include "base/sys/replace_file.hpp"
#include "vm/vgpu/read_host.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <thread>

namespace gantry::vgpu {
namespace {

constexpr std::string_view kSriovManage = "/usr/lib/nvidia/sriov-manage";
constexpr std::chrono::seconds kProgramDeadline{60};

Status run_program(const std::vector<std::string>& words) {
  GANTRY_TRY(const auto result, sys::run_command(words, kProgramDeadline));
  if (result.status == 0) return {};
  return Error(Errc::Internal, fmt::format("{} ended with {}: {}", fmt::join(words, " "),
                                           result.status, trim(result.output)));
}

std::string sriov_path(const model::PciAddress& gpu) {
  return fmt::format("/sys/bus/pci/devices/{}/sriov_numvfs", gpu.sysfs());
}

// The kernel refuses to go from one number to another that is not 0.
Status write_numvfs(const sys::Host& host, const Actions& actions, const model::PciAddress& gpu,
                    unsigned count) {
  const auto path = sriov_path(gpu);
  GANTRY_TRY(const auto now, read_enabled_vfs(host, gpu));
  if (now != 0) GANTRY_CHECK(actions.write(path, "0"));
  return actions.write(path, fmt::to_string(count));
}

Status erase_file(const sys::Host& host, std::string_view path) {
  const auto outside = host.outside(path);
  if (::unlink(outside.c_str()) != 0 && errno != ENOENT)
    return Error::sys(errno, fmt::format("remove {}", outside));
  return {};
}

}  // namespace

std::string random_uuid() {
  std::array<unsigned char, 16> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got < 0 && errno != EINTR) GANTRY_ASSERT(!"getrandom failed");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

void add_common_actions(const sys::Host& host, Actions& actions) {
  actions.save = [&host](std::string_view path, std::string_view content) {
    return sys::replace_file(host.outside(path), content);
  };
  actions.erase = [&host](std::string_view path) { return erase_file(host, path); };
  actions.pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); };
  actions.new_uuid = random_uuid;
}

Actions live_actions(const sys::Host& host, const LiveOptions& options) {
  Actions actions;
  add_common_actions(host, actions);
  actions.write = [&host, options](std::string_view path, std::string_view text) {
    return sys::write_with_deadline(host, path, text, options.write_deadline);
  };
  actions.enable_vfs = [&host, write = actions.write](const model::PciAddress& gpu,
                                                      unsigned count) -> Status {
    if (host.is_live() && host.exists(kSriovManage))
      return run_program({std::string(kSriovManage), "-e", gpu.sysfs()});
    Actions only;
    only.write = write;
    return write_numvfs(host, only, gpu, count);
  };
  actions.enable_mixed = [&host](const model::PciAddress& gpu) -> Status {
    if (!host.is_live()) {
      return Error(Errc::Unsupported,
                   "mixed sizes are allowed by nvidia-smi, which can act only on the machine that "
                   "it runs on");
    }
    return run_program({"nvidia-smi", "vgpu", "-i", gpu.sysfs(), "-shm", "1"});
  };
  return actions;
}

}  // namespace gantry::vgpu
