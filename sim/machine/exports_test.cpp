// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/exports.hpp"

#include "sim/machine/elf_writer.hpp"

#include <gtest/gtest.h>

namespace gantry::sim {
namespace {

TEST(HideFunctions, RefusesWhatIsNoLibrary) {
  for (std::string bytes : {std::string(),
                            std::string("\x7f"
                                        "ELF"),
                            std::string(4096, '\xff')}) {
    const auto hidden = hide_newer_nvml_functions(bytes, 384);
    ASSERT_FALSE(hidden.ok());
    EXPECT_EQ(hidden.error().code(), Errc::Corrupt);
  }
}

TEST(HideFunctions, SurvivesEveryTruncationOfALibrary) {
  const std::string whole = shared_object("libnvidia-ml.so.1", ElfClass::Bits64);
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    std::string part = whole.substr(0, size);
    (void)hide_newer_nvml_functions(part, 384);
    EXPECT_EQ(part.size(), size);
  }
}

}  // namespace
}  // namespace gantry::sim
