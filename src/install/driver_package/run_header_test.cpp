// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/run_header.hpp"

#include "install/driver_package/run_file_for_test.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::HasSubstr;

Result<RunHeader> parse(const std::string& text) {
  return parse_run_header(std::string_view(text).substr(0, kRunPrefix), text.size());
}

TEST(RunHeader, IsReadFromTheScript) {
  const auto text = run_file();
  const auto header = parse(text);
  ASSERT_TRUE(header.ok()) << header.error().text();
  EXPECT_EQ(header->version, "580.159.04");
  EXPECT_EQ(header->architecture, "x86_64");
  EXPECT_EQ(header->kind, RunKind::Driver);
  EXPECT_EQ(header->target_directory, "NVIDIA-Linux-x86_64-580.159.04");
  EXPECT_EQ(header->label, "NVIDIA Accelerated Graphics Driver for Linux-x86_64 580.159.04");
  EXPECT_EQ(header->script, "./nvidia-installer");
  EXPECT_EQ(header->maker, "1.6.0-nv9");
  EXPECT_EQ(header->compression, "zstd");
  EXPECT_EQ(header->payload_offset, text.size() - 10);
  EXPECT_EQ(header->payload_bytes, 10U);
  EXPECT_EQ(header->unpacked_bytes, 1234567ULL << 10U);
  EXPECT_EQ(header->crc, 0U);
  EXPECT_EQ(header->md5, "");
}

TEST(RunHeader, KnowsEachCompression) {
  using namespace std::string_literals;
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  const std::vector<std::pair<std::string, std::string>> cases = {{"\xfd"
                                                                   "7zXZ\0"s,
                                                                   "xz"},
                                                                  {"\x1f\x8b\x08"s, "gzip"},
                                                                  {"BZh9"s, "bzip2"},
                                                                  {"\x5d\0\0\x80"s, "lzma"},
                                                                  {tar, "none"}};
  for (const auto& [payload, name] : cases) {
    const auto header = parse(run_file({.payload = payload}));
    ASSERT_TRUE(header.ok()) << name;
    EXPECT_EQ(header->compression, name);
  }
  EXPECT_EQ(parse(run_file({.payload = "plain"})).error().code(), Errc::Unsupported);
}

TEST(RunHeader, KnowsTheKinds) {
  const auto kind = [](std::string directory) {
    const auto header = parse(run_file({.target_directory = std::move(directory)}));
    return header.ok() ? header->kind : RunKind::Driver;
  };
  EXPECT_EQ(kind("NVIDIA-Linux-x86_64-580.159.04-grid"), RunKind::GuestDriver);
  EXPECT_EQ(kind("NVIDIA-Linux-x86_64-580.159.04-vgpu-kvm"), RunKind::VgpuHost);
  EXPECT_EQ(kind("NVIDIA-Linux-x86_64-580.159.04-no-compat32"), RunKind::Driver);
}

TEST(RunHeader, WhatContradictsItselfIsDamaged) {
  EXPECT_EQ(parse(run_file({.version = "580.159.05"})).error().code(), Errc::Corrupt);
  EXPECT_EQ(parse(run_file({.architecture = "aarch64"})).error().code(), Errc::Corrupt);
  EXPECT_EQ(parse(run_file({.md5 = "x"})).error().code(), Errc::Corrupt);
  EXPECT_EQ(parse(run_file({.skip = "9000"})).error().code(), Errc::Corrupt);
  const auto cut = parse(run_file({.payload = ""}));
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Errc::Corrupt);
  EXPECT_THAT(cut.error().text(), HasSubstr("download it again"));
}

TEST(RunHeader, WhatIsNotARunFileIsRefused) {
  for (const std::string text :
       {"", "#! /bin/sh", "#! /bin/sh\n", "<html>\n<title>Login</title>\n", "\177ELF",
        "#! /usr/bin/python3\nskip=4\n", "#! /bin/sh\nskip=4\n\n\nx", "#!/bin/sh\nskip=-1\n",
        "#! /bin/sh\nskip=99999999999999999999\n"}) {
    const auto header = parse(text);
    ASSERT_FALSE(header.ok()) << text;
    EXPECT_EQ(header.error().code(), Errc::Invalid) << text;
  }
  for (const auto* bad : {"0", "3", "100001", "33x", ""}) {
    auto text = run_file();
    text.replace(text.find("skip=33"), 7, fmt::format("skip={}", bad));
    EXPECT_FALSE(parse(text).ok()) << bad;
  }
  EXPECT_EQ(parse(run_file({.crc = "4294967296"})).error().code(), Errc::Invalid);
  EXPECT_EQ(parse(run_file({.target_directory = "../../etc"})).error().code(), Errc::Invalid);
}

TEST(RunHeader, ACutAnywhereIsAnErrorOrTheSameHeader) {
  const auto text = run_file();
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto header = parse(text.substr(0, size));
    if (header.ok()) {
      EXPECT_EQ(header->payload_offset, text.size() - 10) << size;
    }
  }
}

TEST(RunHeader, AScriptThatIsTooLongIsUnsupported) {
  const auto text = run_file({.skip = "99999"});
  EXPECT_EQ(parse_run_header(text, text.size() + 1).error().code(), Errc::Unsupported);
}

// The sums were computed with cksum and md5sum of coreutils over everything from line 4 on.
class RunFileTest : public testing::Test {
 protected:
  Status check(const std::string& text) {
    tree_.file("driver.run", text);
    const auto header = read_run_header(tree_.host(), "/driver.run");
    if (!header.ok()) return Error(header.error());
    return check_run_file(tree_.host(), "/driver.run", *header);
  }
  RunFileForTest right_{.crc = "2808240592", .md5 = "b12eacd9613ec6f239798a27912995ee"};
  test::Tree tree_;
};

TEST_F(RunFileTest, RightSumsAreAccepted) {
  EXPECT_TRUE(check(run_file(right_)).ok());
  right_.md5 = std::string(32, '0');  // none
  EXPECT_TRUE(check(run_file(right_)).ok());
}

TEST_F(RunFileTest, EachChangedByteIsDamage) {
  const auto text = run_file(right_);
  auto damaged = text;
  damaged.back() = '!';
  const auto status = check(damaged);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Corrupt);
  EXPECT_THAT(status.error().text(), HasSubstr("download it again"));
  EXPECT_EQ(check(text.substr(0, text.size() - 1)).error().code(), Errc::Corrupt);
  right_.md5 = std::string(32, 'a');
  EXPECT_THAT(check(run_file(right_)).error().text(), HasSubstr("MD5"));
}

TEST_F(RunFileTest, WhatIsNotAFileIsRefused) {
  tree_.directory("d");
  EXPECT_FALSE(read_run_header(tree_.host(), "/d").ok());
  EXPECT_EQ(read_run_header(tree_.host(), "/none").error().code(), Errc::NotFound);
}

TEST(RunFileName, IsReadAndWritten) {
  struct Case {
    const char* name = nullptr;
    RunName expected;
  };
  for (const auto& [name, expected] : {
           Case{"/x/NVIDIA-Linux-x86_64-460.56.run", {"x86_64", "460.56", RunKind::Driver}},
           Case{"NVIDIA-Linux-aarch64-580.159.04", {"aarch64", "580.159.04", RunKind::Driver}},
           Case{"NVIDIA-Linux-x86_64-535.129.03-grid-aws.run",
                {"x86_64", "535.129.03", RunKind::GuestDriver}},
           Case{"NVIDIA-Linux-x86_64-550.54.16-vgpu-kvm.run",
                {"x86_64", "550.54.16", RunKind::VgpuHost}},
       }) {
    const auto found = parse_run_name(name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(*found, expected) << name;
  }
  for (const auto* bad :
       {"", ".run", "cuda_12.0.0_525.60.13_linux.run", "NVIDIA-Linux-x86_64-580.run",
        "NVIDIA-Linux-x86_64-.run", "NVIDIA-Linux-riscv64-580.1.run", "NVIDIA-Linux-x86_64",
        "NVIDIA-Linux-x86_64-580.1; rm -rf.run", "NVIDIA-Linux-x86_64-580.1.2.3.run"})
    EXPECT_FALSE(parse_run_name(bad).ok()) << bad;
  EXPECT_EQ(run_file_name({"x86_64", "460.56", RunKind::Driver}), "NVIDIA-Linux-x86_64-460.56.run");
  EXPECT_EQ(run_file_name({"x86_64", "535.129.03", RunKind::GuestDriver}),
            "NVIDIA-Linux-x86_64-535.129.03-grid.run");
}

}  // namespace
}  // namespace gantry::driver_package
