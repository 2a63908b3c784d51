// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/device_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gantry::runtime {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kRead = BPF_DEVCG_ACC_READ;
constexpr std::uint32_t kWrite = BPF_DEVCG_ACC_WRITE;
constexpr std::uint32_t kMknod = BPF_DEVCG_ACC_MKNOD;
constexpr std::uint32_t kChar = BPF_DEVCG_DEV_CHAR;
constexpr std::uint32_t kBlock = BPF_DEVCG_DEV_BLOCK;

bpf_insn code(unsigned opcode, unsigned to = 0, int off = 0, int imm = 0, unsigned from = 0) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(opcode);
  made.dst_reg = to & 0xfU;
  made.src_reg = from & 0xfU;
  made.off = static_cast<std::int16_t>(off);
  made.imm = imm;
  return made;
}

const bpf_insn exit_now = code(BPF_JMP | BPF_EXIT);

std::vector<bpf_insn> refuse_all() {
  return {code(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0), exit_now};
}

// Only 1:3, as a container's /dev/null.
std::vector<bpf_insn> only_null() {
  return {code(BPF_LDX | BPF_MEM | BPF_W, 2, 4, 0, 1), code(BPF_JMP | BPF_JNE | BPF_K, 2, 4, 1),
          code(BPF_LDX | BPF_MEM | BPF_W, 2, 8, 0, 1), code(BPF_JMP | BPF_JNE | BPF_K, 2, 2, 3),
          code(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 1),  exit_now,
          code(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0),  exit_now};
}

// The kernel's answer, for the instructions that device programs are made of.
bool allowed(const std::vector<bpf_insn>& program, std::uint32_t type, std::uint32_t access,
             std::uint32_t major, std::uint32_t minor) {
  const std::array<std::uint32_t, 3> context{access << 16U | type, major, minor};
  std::array<std::uint64_t, 11> r{};
  for (std::size_t at = 0; at < program.size(); ++at) {
    const auto& i = program[at];
    auto& to = r.at(i.dst_reg);
    const auto imm = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm));
    const auto jump = [&](bool taken) { at += taken ? static_cast<std::size_t>(i.off) : 0; };
    switch (i.code) {
      case BPF_LDX | BPF_MEM | BPF_W: to = context.at(static_cast<std::size_t>(i.off) / 4); break;
      case BPF_ALU64 | BPF_MOV | BPF_X: to = r.at(i.src_reg); break;
      case BPF_ALU64 | BPF_MOV | BPF_K: to = imm; break;
      case BPF_ALU64 | BPF_AND | BPF_K: to &= imm; break;
      case BPF_ALU64 | BPF_RSH | BPF_K: to >>= imm; break;
      case BPF_JMP | BPF_JNE | BPF_K: jump(to != imm); break;
      case BPF_JMP | BPF_JSET | BPF_K: jump((to & imm) != 0); break;
      case BPF_JMP | BPF_EXIT: return r[0] != 0;
      default: ADD_FAILURE() << "instruction " << int{i.code}; return false;
    }
  }
  ADD_FAILURE() << "ran off the end";
  return false;
}

const std::vector<DeviceRule> gpu_rules{{195, 0}, {195, 255}, {510, 0}};

TEST(DeviceProgram, AllowsOurNodesAndNoOthers) {
  const auto program = allow_first(gpu_rules, refuse_all());
  ASSERT_TRUE(program.ok());
  for (const auto& rule : gpu_rules) {
    EXPECT_TRUE(allowed(*program, kChar, kRead | kWrite, rule.major, rule.minor));
    EXPECT_TRUE(allowed(*program, kChar, kRead, rule.major, rule.minor));
  }
  EXPECT_FALSE(allowed(*program, kChar, kRead, 195, 1));
  EXPECT_FALSE(allowed(*program, kChar, kRead, 510, 255));
  EXPECT_FALSE(allowed(*program, kBlock, kRead, 195, 0));
}

TEST(DeviceProgram, NeverAllowsMknod) {
  const auto program = allow_first(gpu_rules, refuse_all());
  ASSERT_TRUE(program.ok());
  EXPECT_FALSE(allowed(*program, kChar, kMknod, 195, 0));
  EXPECT_FALSE(allowed(*program, kChar, kMknod | kRead | kWrite, 195, 0));
}

TEST(DeviceProgram, LeavesTheRestToTheProgramBefore) {
  const auto program = allow_first(gpu_rules, only_null());
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(allowed(*program, kChar, kRead | kMknod, 1, 3));
  EXPECT_TRUE(allowed(*program, kBlock, kRead, 1, 3));
  EXPECT_FALSE(allowed(*program, kChar, kRead, 1, 5));
  EXPECT_TRUE(allowed(*program, kChar, kWrite, 195, 255));
}

TEST(DeviceProgram, IsTheSameWhenAskedTwice) {
  const auto once = allow_first(gpu_rules, only_null());
  ASSERT_TRUE(once.ok());
  const auto twice = allow_first(gpu_rules, *once);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice->size(), once->size());
}

TEST(DeviceProgram, WithoutRulesIsTheProgramBefore) {
  const auto program = allow_first({}, only_null());
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->size(), only_null().size());
}

TEST(DeviceProgram, ManyRulesStillJumpToTheRightPlace) {
  std::vector<DeviceRule> many;
  for (std::uint32_t minor = 0; minor < kMaxDeviceRules; ++minor) many.push_back({235, minor});
  const auto program = allow_first(many, only_null());
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(allowed(*program, kChar, kRead, 235, kMaxDeviceRules - 1));
  EXPECT_FALSE(allowed(*program, kChar, kRead, 235, kMaxDeviceRules));
  EXPECT_TRUE(allowed(*program, kBlock, kRead, 1, 3));
}

TEST(DeviceProgram, RefusesWhatCannotBeLoadedAgain) {
  const std::vector<bpf_insn> calls{code(BPF_JMP | BPF_CALL, 0, 0, 14), exit_now};
  const auto helper = allow_first(gpu_rules, calls);
  ASSERT_FALSE(helper.ok());
  EXPECT_EQ(helper.error().code(), Errc::Unsupported);
  EXPECT_THAT(helper.error().text(), HasSubstr("helpers or uses maps"));

  const std::vector<bpf_insn> maps{code(BPF_LD | BPF_IMM | BPF_DW, 1, 0, 7, BPF_PSEUDO_MAP_FD),
                                   code(0), exit_now};
  EXPECT_FALSE(allow_first(gpu_rules, maps).ok());
  EXPECT_FALSE(allow_first(gpu_rules, {}).ok());
}

TEST(DeviceProgram, TakesAWideNumberForNoInstruction) {
  // The second half of a 64-bit constant may look like a call.
  const std::vector<bpf_insn> wide{code(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 1), code(0), exit_now};
  EXPECT_TRUE(allow_first(gpu_rules, wide).ok());
}

TEST(DeviceProgram, RefusesTooMuch) {
  const std::vector<DeviceRule> rules(kMaxDeviceRules + 1, DeviceRule{195, 0});
  EXPECT_FALSE(allow_first(rules, refuse_all()).ok());
  const std::vector<DeviceRule> huge{{0xffffffffU, 0}};
  EXPECT_FALSE(allow_first(huge, refuse_all()).ok());
  const std::vector<bpf_insn> endless(kMaxDeviceInstructions + 1, exit_now);
  EXPECT_FALSE(allow_first(gpu_rules, endless).ok());
}

}  // namespace
}  // namespace gantry::runtime
