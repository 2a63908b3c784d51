// SPDX-License-Identifier: Apache-2.0
// In every way of opening libcuda a program gets the fence, and behind it the one real driver.
#include "fence/share_under_test.hpp"
#include "support/paths.hpp"

#include <stdio.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace gantry::fence::test {
namespace {

using ::testing::ElementsAre;

class Loading : public ::testing::Test {
 protected:
  // The output of the probe, one line for each name.
  std::vector<std::string> opened(const std::vector<std::string>& names) {
    std::string command = "LD_LIBRARY_PATH=" + share.directory() + " " +
                          gantry::test::built("tests/fence/fence_probe");
    for (const std::string& name : names) command += " '" + name + "'";
    std::vector<std::string> lines;
    FILE* out = ::popen(command.c_str(), "re");
    char line[1024];
    while (out != nullptr && ::fgets(line, sizeof line, out) != nullptr)
      lines.emplace_back(line, std::string(line).find('\n'));
    EXPECT_EQ(::pclose(out), 0);
    return lines;
  }

  ShareUnderTest share;
  const std::string both = share.fence() + " " + share.driver();
};

// For `gantry doctor`, which does not load them.
TEST(Libraries, SayInTheirBytesWhatTheySpeak) {
  for (const char* name : {"lib/libgantry-fence.so", "lib/libgantry-fence-nvml.so"}) {
    const auto file = gantry::test::built(name);
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NE(bytes.find(FENCE_SPEAKS + std::to_string(FENCE_VERSION)), std::string::npos) << file;
  }
}

TEST_F(Loading, ByNameByPathAndByWhatIsThere) {
  EXPECT_THAT(opened({"libcuda.so.1"}), ElementsAre(both));
  EXPECT_THAT(opened({share.fence()}), ElementsAre(both));
  EXPECT_THAT(opened({"?libcuda.so.1", "libcuda.so.1", "?libcuda.so.1", "?" + share.fence(), "="}),
              ElementsAre("nothing nothing", both, both, both, both));
}

TEST_F(Loading, ByTheNameThatDevelopersLink) {
  std::filesystem::create_symlink("libcuda.so.1", share.directory() + "/libcuda.so");
  EXPECT_THAT(opened({"libcuda.so", "?libcuda.so.1", "libcuda.so.1"}),
              ElementsAre(share.directory() + "/libcuda.so " + share.driver(),
                          share.directory() + "/libcuda.so " + share.driver(),
                          share.directory() + "/libcuda.so " + share.driver()))
      << "one library, by the name that was opened first";
}

// First a copy of the fence, then libcuda.so.1: the loader recognises it by its SONAME.
TEST_F(Loading, ASecondCopyIsNotLoadedByName) {
  const std::string copy = share.directory() + "/copy";
  std::filesystem::copy_file(share.fence(), copy);
  EXPECT_THAT(opened({copy, "libcuda.so.1"}),
              ElementsAre(copy + " " + share.driver(), copy + " " + share.driver()));
}

TEST_F(Loading, TheDriverAloneIsStillTheDriver) {
  EXPECT_THAT(opened({share.driver()}), ElementsAre(share.driver() + " " + share.driver()));
}

}  // namespace
}  // namespace gantry::fence::test
