// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/version.hpp"

#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace gantry::procfs {
namespace {

using model::ModuleFlavour;

constexpr std::string_view kOpen =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@)\n"
    "GCC version:  gcc version 15.3.0 (GCC)\n";

TEST(VersionFile, TellsTheFlavours) {
  EXPECT_EQ(parse_version_file(kOpen).version, "580.159.04");
  EXPECT_EQ(parse_version_file(kOpen).flavour, ModuleFlavour::Open);
  const auto old = parse_version_file(
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  384.98  Thu Oct 26 15:16:01 PDT 2017\n");
  EXPECT_EQ(old.version, "384.98");
  EXPECT_EQ(old.flavour, ModuleFlavour::Proprietary);
}

TEST(VersionFile, KnowsNothingFromGarbage) {
  for (const auto* text : {"", "NVRM", "\n\n", "GCC version:  gcc version 15.3.0 (GCC)\n"}) {
    EXPECT_EQ(parse_version_file(text).version, "") << text;
    EXPECT_EQ(parse_version_file(text).flavour, ModuleFlavour::Unknown) << text;
  }
  EXPECT_EQ(parse_version_file("NVRM version: 1.2.3.4.5.6 99999999.1 ..").version, "");
}

TEST(ReadVersion, TakesTheModulesOwnVersionIfTheFileHasNone) {
  test::Tree tree;
  tree.file("sys/module/nvidia/version", "580.159.04\n");
  EXPECT_FALSE(read_version(tree.host()).ok()) << "the driver is not loaded";
  tree.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n");
  EXPECT_EQ(read_version(tree.host())->version, "580.159.04");
  EXPECT_EQ(read_version(tree.host())->flavour, ModuleFlavour::Proprietary);
  tree.file("proc/driver/nvidia/version", "NVRM version: Kernel Module  590.1.2  x\n");
  EXPECT_EQ(read_version(tree.host())->version, "590.1.2");
  tree.file("proc/driver/nvidia/version", std::string(70000, 'x'));
  EXPECT_EQ(read_version(tree.host()).error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::procfs
