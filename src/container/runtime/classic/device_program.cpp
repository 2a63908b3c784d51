// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/device_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

namespace gantry::runtime {
namespace {

constexpr std::uint8_t kContext = BPF_REG_1;  // struct bpf_cgroup_dev_ctx; must not change

bpf_insn instruction(unsigned code, std::uint8_t to, std::uint8_t from, std::int16_t off,
                     std::int32_t imm) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(code);
  made.dst_reg = to & 0xfU;
  made.src_reg = from & 0xfU;
  made.off = off;
  made.imm = imm;
  return made;
}

bpf_insn load_field(std::uint8_t to, std::size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | BPF_W, to, kContext, static_cast<std::int16_t>(offset), 0);
}

bpf_insn jump_if(unsigned condition, std::uint8_t what, std::uint32_t value, std::size_t over) {
  return instruction(BPF_JMP | condition | BPF_K, what, 0, static_cast<std::int16_t>(over),
                     static_cast<std::int32_t>(value));
}

constexpr std::size_t kPerRule = 4;

// Registers 2 to 5 are free: only register 1 has a defined value at the start of a program.
std::vector<bpf_insn> rules_block(std::span<const DeviceRule> rules) {
  const std::size_t body = 2 + rules.size() * kPerRule;  // the instructions after the two tests
  std::vector<bpf_insn> code{
      load_field(BPF_REG_2, offsetof(bpf_cgroup_dev_ctx, access_type)),
      instruction(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0),
      instruction(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_3, 0, 0, 0xffff),
      jump_if(BPF_JNE, BPF_REG_3, BPF_DEVCG_DEV_CHAR, body + 2),
      instruction(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_2, 0, 0, 16),
      jump_if(BPF_JSET, BPF_REG_2, BPF_DEVCG_ACC_MKNOD, body),
      load_field(BPF_REG_4, offsetof(bpf_cgroup_dev_ctx, major)),
      load_field(BPF_REG_5, offsetof(bpf_cgroup_dev_ctx, minor)),
  };
  for (const auto& rule : rules) {
    code.push_back(jump_if(BPF_JNE, BPF_REG_4, rule.major, 3));
    code.push_back(jump_if(BPF_JNE, BPF_REG_5, rule.minor, 2));
    code.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1));
    code.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  }
  return code;
}

Status can_be_loaded_again(std::span<const bpf_insn> before) {
  if (before.empty() || before.size() > kMaxDeviceInstructions) {
    return Error(Errc::Invalid,
                 fmt::format("a device program has {} instructions; 1 to {} are supported",
                             before.size(), kMaxDeviceInstructions));
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& each = before[i];
    const bool calls = each.code == (BPF_JMP | BPF_CALL);
    const bool wide = each.code == (BPF_LD | BPF_IMM | BPF_DW);
    if (calls || (wide && each.src_reg != 0)) {
      return Error(Errc::Unsupported,
                   "the device program of the container's cgroup calls helpers or uses maps, so "
                   "rules cannot be added to it");
    }
    if (wide) ++i;  // the second half is not an instruction, but the upper 32 bits of the number
  }
  return {};
}

bool begins_with(std::span<const bpf_insn> code, std::span<const bpf_insn> front) {
  return code.size() > front.size() &&
         std::memcmp(code.data(), front.data(), front.size_bytes()) == 0;
}

}  // namespace

Result<std::vector<bpf_insn>> allow_first(std::span<const DeviceRule> rules,
                                          std::span<const bpf_insn> before) {
  GANTRY_CHECK(can_be_loaded_again(before));
  constexpr auto kMaxDeviceNumber =
      static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
  const bool sane = std::all_of(rules.begin(), rules.end(), [](const DeviceRule& rule) {
    return rule.major <= kMaxDeviceNumber && rule.minor <= kMaxDeviceNumber;
  });
  if (rules.size() > kMaxDeviceRules || !sane) {
    return Error(Errc::Invalid, fmt::format("{} device rules; at most {} with 31-bit numbers are "
                                            "taken",
                                            rules.size(), kMaxDeviceRules));
  }
  std::vector<bpf_insn> code;
  const auto block = rules_block(rules);
  if (!rules.empty() && !begins_with(before, block)) code = block;
  code.insert(code.end(), before.begin(), before.end());
  return code;
}

}  // namespace gantry::runtime
