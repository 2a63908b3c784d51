// SPDX-License-Identifier: Apache-2.0
#include "container/plan/capabilities.hpp"

#include "container/plan/driver_paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

using enum model::Capability;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Capabilities, AreWordsBetweenCommas) {
  EXPECT_THAT(*parse_capabilities(" compute, utility,,compute"), ElementsAre(Compute, Utility));
  EXPECT_THAT(*parse_capabilities(""), ElementsAre(Utility, Compute));
  EXPECT_EQ(*parse_capabilities("video,all"), all_capabilities());
}

TEST(Capabilities, AWordThatIsNoneIsRefusedWithThoseThereAre) {
  const auto wrong = parse_capabilities("compute,everything");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), Errc::Invalid);
  EXPECT_THAT(wrong.error().text(), HasSubstr("\"everything\""));
  EXPECT_THAT(wrong.error().text(), HasSubstr("compute, utility, video"));
}

TEST(Sets, AreNamedAfterTheClosedCapabilitiesInOneOrder) {
  EXPECT_EQ(library_set_name(model::expand_capabilities(std::vector{Utility, Compute})),
            "compute+utility");
  EXPECT_EQ(library_set_name(model::expand_capabilities(std::vector{Video})), "compute+video");
  EXPECT_EQ(library_set_name(model::expand_capabilities(std::vector{Display})), "graphics");
  EXPECT_EQ(library_set_name(model::expand_capabilities(std::vector{Compat32})), "");
}

TEST(Sets, ThereIsOneForEveryRequest) {
  const auto sets = library_sets();
  EXPECT_EQ(sets.size(), 23U);
  const auto every = all_capabilities();
  for (unsigned bits = 1; bits < 1U << every.size(); ++bits) {
    std::vector<model::Capability> asked;
    for (std::size_t i = 0; i < every.size(); ++i) {
      if ((bits >> i & 1U) != 0) asked.push_back(every[i]);
    }
    const auto name = library_set_name(model::expand_capabilities(asked));
    const auto same = [&](const LibrarySet& set) { return set.name == name; };
    EXPECT_TRUE(name.empty() || std::any_of(sets.begin(), sets.end(), same)) << name;
  }
}

TEST(Names, ALibraryInASubdirectoryIsFoundInBoth) {
  const model::DriverFile vdpau{.path = "/usr/lib64/vdpau/libvdpau_nvidia.so.580.159.04",
                                .soname = "libvdpau_nvidia.so.1",
                                .links = {"libvdpau_nvidia.so.1"}};
  EXPECT_THAT(names_in_directory(vdpau),
              ElementsAre("libvdpau_nvidia.so.580.159.04", "vdpau/libvdpau_nvidia.so.580.159.04",
                          "libvdpau_nvidia.so.1", "vdpau/libvdpau_nvidia.so.1"));
}

TEST(Names, NoneLeadsOutOfTheDirectory) {
  const model::DriverFile hostile{.path = "/usr/lib64/libcuda.so.580.159.04",
                                  .soname = "../../etc/passwd",
                                  .links = {"/etc/shadow", "..", "a/b", "gbm/../x", "libcuda.so"}};
  EXPECT_THAT(names_in_directory(hostile), ElementsAre("libcuda.so.580.159.04", "libcuda.so"));
}

}  // namespace
}  // namespace gantry::plan
