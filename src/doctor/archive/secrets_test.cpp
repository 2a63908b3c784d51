// SPDX-License-Identifier: Apache-2.0
#include "doctor/archive/secrets.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace gantry::doctor {
namespace {

TEST(Secrets, AreRemovedFromEveryNotation) {
  const std::pair<const char*, const char*> cases[] = {
      {"token: abc123def", "token: [removed]"},
      {"  password = \"a b\\\"c\"  # mine", "  password = \"[removed]\"  # mine"},
      {"{\"auth\":\"dXNlcg==\",\"keep\":1}", "{\"auth\":\"[removed]\",\"keep\":1}"},
      {"\"client-key-data\": \"LS0t\"", "\"client-key-data\": \"[removed]\""},
      {"AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=[removed]"},
      {"Authorization: Bearer abc.def", "Authorization: [removed]"},
      {"sent Bearer abc", "sent Bearer [removed]"},
      {"https://user:pass@example.com/x", "https://[removed]@example.com/x"},
      {"x eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ4In0.c2ln y", "x [removed] y"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(remove_secrets(text), expected);
}

TEST(Secrets, OfPemBlocksAreRemovedWithTheirLines) {
  EXPECT_EQ(remove_secrets("a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb\n"),
            "a\n[removed]\nb\n");
  EXPECT_EQ(remove_secrets("-----BEGIN PRIVATE KEY-----\nMIIE\ncut"), "[removed]\n");
}

TEST(Secrets, OtherTextStaysAsItIs) {
  for (const char* text : {"tokens: 4\n", "\"token\": null", "a: b\n\n  c = 1\n", "https://a/b@c",
                           "NVRM: Xid (PCI:0000:3b:00): 79", "", "\n", "password",
                           "secret:", "{\"token\":true,\"a\":1}"}) {
    EXPECT_EQ(remove_secrets(text), text);
  }
}

}  // namespace
}  // namespace gantry::doctor
