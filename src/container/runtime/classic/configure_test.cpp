// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/configure.hpp"

#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

TEST(ConfigureFailure, AnErrorWithItsRemedyIsPrintedAlone) {
  EXPECT_EQ(describe_failure(Error(Errc::NotFound, "no driver").advise("run `gantry doctor`")),
            "nvidia-container-cli: no driver; run `gantry doctor`\n");
  EXPECT_EQ(describe_failure(Error(Errc::Denied, "/run/x is writable").advise("chmod go-w /run/x")),
            "nvidia-container-cli: /run/x is writable; chmod go-w /run/x\n")
      << "a remedy without backquotes is a remedy too";
}

TEST(ConfigureFailure, AnErrorWithoutARemedyPointsToTheDoctor) {
  EXPECT_EQ(describe_failure(Error(Errc::Corrupt, "line 1, column 2: `,` or `}` expected")),
            "nvidia-container-cli: line 1, column 2: `,` or `}` expected\n"
            "Run `gantry doctor` for the cause and the remedy.\n")
      << "backquotes around a character are not a remedy";
}

}  // namespace
}  // namespace gantry::runtime
