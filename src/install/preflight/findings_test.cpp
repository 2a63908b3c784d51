// SPDX-License-Identifier: Apache-2.0
// A case for each finding: what is changed on a machine that is fit, and what is then said.
#include "install/preflight/host_for_test.hpp"

#include <gtest/gtest.h>

namespace gantry::preflight {
namespace {

TEST(Findings, OfTheRequest) {
  check_cases(request_cases());
}

TEST(Findings, OfTheGpus) {
  check_cases(gpu_cases());
}

TEST(Findings, OfTheKernel) {
  check_cases(kernel_cases());
}

TEST(Findings, OfTheDriverThatIsThere) {
  check_cases(user_cases());
}

TEST(Findings, OfTheMachine) {
  check_cases(machine_cases());
}

}  // namespace
}  // namespace gantry::preflight
