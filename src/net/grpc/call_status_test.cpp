// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/call_status.hpp"

#include <gmock/gmock.h>

namespace gantry::grpc {
namespace {

TEST(PercentEncoding, LeavesPrintableAsciiAloneAndEscapesTheRest) {
  EXPECT_EQ(percent_encode("GPU-1 lost: 50% done\n\xC3\xA4"), "GPU-1 lost: 50%25 done%0A%C3%A4");
}

TEST(PercentEncoding, ComesBackAsItWas) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
}

TEST(PercentEncoding, ALonePercentSignIsKept) {
  EXPECT_EQ(percent_decode("5% of %zz%4"), "5% of %zz%4");
}

TEST(CallStatus, AnErrorKeepsItsTextAndGetsACode) {
  EXPECT_EQ(to_call_status(Error(Errc::NotFound, "no GPU-7")),
            (CallStatus{StatusCode::NotFound, "no GPU-7"}));
  EXPECT_EQ(to_error({StatusCode::Unavailable, "gone"}).text(), "UNAVAILABLE: gone");
  EXPECT_EQ(to_error({StatusCode::Unavailable, "gone"}).code(), Errc::Busy);
}

}  // namespace
}  // namespace gantry::grpc
