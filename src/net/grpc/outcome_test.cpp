// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/outcome.hpp"

#include <gmock/gmock.h>

namespace gantry::grpc {
namespace {

TEST(PercentEncoding, LeavesPrintableAsciiAloneAndEscapesTheRest) {
  EXPECT_EQ(percent_encoded("GPU-1 lost: 50% done\n\xC3\xA4"), "GPU-1 lost: 50%25 done%0A%C3%A4");
}

TEST(PercentEncoding, ComesBackAsItWas) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
}

TEST(PercentEncoding, ALonePercentSignIsKept) {
  EXPECT_EQ(percent_decoded("5% of %zz%4"), "5% of %zz%4");
}

TEST(Outcome, AnErrorKeepsItsTextAndGetsACode) {
  EXPECT_EQ(outcome_of(Error(Errc::NotFound, "no GPU-7")), (Outcome{Code::NotFound, "no GPU-7"}));
  EXPECT_EQ(error_of({Code::Unavailable, "gone"}).text(), "UNAVAILABLE: gone");
  EXPECT_EQ(error_of({Code::Unavailable, "gone"}).code(), Errc::Busy);
}

}  // namespace
}  // namespace gantry::grpc
