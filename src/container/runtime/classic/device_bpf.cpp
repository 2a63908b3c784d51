// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/device_bpf_internal.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace gantry::runtime {
namespace {

constexpr std::size_t kMaxPrograms = 64;  // the kernel's own limit for one cgroup

// In the kernel's struct, an address is a __u64.
template <class T>
std::uint64_t address_of(T* where) {
  return reinterpret_cast<std::uintptr_t>(where);
}

// Initializing one member of a union does not clear its other bytes, but the kernel requires zeros.
bpf_attr zeroed() {
  bpf_attr attr{};
  std::memset(&attr, 0, sizeof(attr));
  return attr;
}

int call_bpf(bpf_cmd command, bpf_attr& attr) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attr, sizeof(attr)));
}

int attach(int cgroup_fd, int program_fd, std::uint32_t flags, int replaces) {
  bpf_attr attr = zeroed();
  attr.target_fd = static_cast<std::uint32_t>(cgroup_fd);
  attr.attach_bpf_fd = static_cast<std::uint32_t>(program_fd);
  attr.attach_type = BPF_CGROUP_DEVICE;
  attr.attach_flags = flags;
  if (replaces >= 0) attr.replace_bpf_fd = static_cast<std::uint32_t>(replaces);
  return call_bpf(BPF_PROG_ATTACH, attr);
}

int detach(int cgroup_fd, int program_fd) {
  bpf_attr attr = zeroed();
  attr.target_fd = static_cast<std::uint32_t>(cgroup_fd);
  attr.attach_bpf_fd = static_cast<std::uint32_t>(program_fd);
  attr.attach_type = BPF_CGROUP_DEVICE;
  return call_bpf(BPF_PROG_DETACH, attr);
}

}  // namespace

Result<AttachedPrograms> attached_device_programs(int cgroup_fd) {
  AttachedPrograms found;
  found.ids.resize(kMaxPrograms);
  bpf_attr attr = zeroed();
  attr.query.target_fd = static_cast<std::uint32_t>(cgroup_fd);
  attr.query.attach_type = BPF_CGROUP_DEVICE;
  attr.query.prog_ids = address_of(found.ids.data());
  attr.query.prog_cnt = static_cast<std::uint32_t>(found.ids.size());
  if (call_bpf(BPF_PROG_QUERY, attr) != 0) {
    return Error::sys(errno, "listing the device programs of the cgroup");
  }
  found.ids.resize(attr.query.prog_cnt);
  found.flags = attr.query.attach_flags;
  return found;
}

Result<sys::UniqueFd> device_program(std::uint32_t id) {
  bpf_attr attr = zeroed();
  attr.prog_id = id;
  sys::UniqueFd fd(call_bpf(BPF_PROG_GET_FD_BY_ID, attr));
  if (!fd.valid()) return Error::sys(errno, fmt::format("opening device program {}", id));
  return fd;
}

Result<std::vector<bpf_insn>> instructions_of(int program_fd) {
  // The first call returns the length, the second one the instructions.
  std::vector<bpf_insn> code;
  for (int round = 0; round < 2; ++round) {
    bpf_prog_info info{};
    info.xlated_prog_len = static_cast<std::uint32_t>(code.size() * sizeof(bpf_insn));
    info.xlated_prog_insns = code.empty() ? 0 : address_of(code.data());
    bpf_attr attr = zeroed();
    attr.info.bpf_fd = static_cast<std::uint32_t>(program_fd);
    attr.info.info_len = sizeof(info);
    attr.info.info = address_of(&info);
    if (call_bpf(BPF_OBJ_GET_INFO_BY_FD, attr) != 0) {
      return Error::sys(errno, "reading a device program");
    }
    if (info.type != BPF_PROG_TYPE_CGROUP_DEVICE) {
      return Error(Errc::Invalid, "the program attached to the cgroup is not a device program");
    }
    const std::size_t count = info.xlated_prog_len / sizeof(bpf_insn);
    if (count == 0 || count > kMaxDeviceInstructions ||
        (round == 1 && info.xlated_prog_insns == 0)) {
      return Error(Errc::Unsupported, "the kernel does not show the device program of the cgroup");
    }
    code.resize(count);
  }
  return code;
}

Result<sys::UniqueFd> load_device_program(std::span<const bpf_insn> code) {
  static constexpr char kLicense[] = "Apache-2.0";
  static constexpr char kName[] = "gantry_devices";
  static_assert(sizeof(kName) <= BPF_OBJ_NAME_LEN);
  bpf_attr attr = zeroed();
  attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attr.expected_attach_type = BPF_CGROUP_DEVICE;
  attr.insns = address_of(code.data());
  attr.insn_cnt = static_cast<std::uint32_t>(code.size());
  attr.license = address_of(kLicense);
  std::memcpy(attr.prog_name, kName, sizeof(kName));
  sys::UniqueFd fd(call_bpf(BPF_PROG_LOAD, attr));
  if (!fd.valid()) {
    return Error::sys(errno,
                      fmt::format("loading a device program of {} instructions", code.size()));
  }
  return fd;
}

Status attach_device_program(int cgroup_fd, int program_fd, std::uint32_t flags) {
  if (attach(cgroup_fd, program_fd, flags, -1) == 0) return {};
  return Error::sys(errno, "attaching a device program to the cgroup");
}

Status replace_device_program(int cgroup_fd, int now, int next, std::uint32_t flags) {
  // A single program: attaching replaces it.
  if ((flags & BPF_F_ALLOW_MULTI) == 0) return attach_device_program(cgroup_fd, next, flags);
  if (attach(cgroup_fd, next, flags | BPF_F_REPLACE, now) == 0) return {};
  if (errno != EINVAL) return Error::sys(errno, "replacing a device program of the cgroup");
  // Kernels before 5.6 cannot replace. For a moment both programs are active, which allows less,
  // not more.
  GANTRY_CHECK(attach_device_program(cgroup_fd, next, flags));
  if (detach(cgroup_fd, now) == 0) return {};
  return Error::sys(errno, "detaching the old device program from the cgroup");
}

}  // namespace gantry::runtime
