// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/protobuf.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace gantry::grpc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::string_view_literals;

Status read_all(std::string_view bytes) {
  return each_field(bytes, [](const ProtoField&) -> Status { return {}; });
}

TEST(Wire, WritesTheBytesOfTheSpecification) {
  EXPECT_EQ(ProtoWriter().number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtoWriter().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtoWriter().message(3, ProtoWriter().number(1, 150).bytes()).bytes(),
            "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtoWriter().number(1, -1).bytes().size(), 11U);  // a negative number takes ten bytes
}

TEST(Wire, LeavesDefaultsOutButNotElementsOfLists) {
  EXPECT_EQ(ProtoWriter().number(1, 0).boolean(2, false).text(3, "").bytes(), "");
  EXPECT_EQ(ProtoWriter().add(1, "").message(2, "").bytes(), "\x0a\x00\x12\x00"sv);
}

TEST(Wire, ReadsBackWhatItWrote) {
  const std::string bytes =
      ProtoWriter().number(1, -5).boolean(2, true).text(3, "GPU-ä").entry(4, "k", "v").take();
  std::vector<std::string> seen;
  ASSERT_TRUE(each_field(bytes, [&](const ProtoField& field) -> Status {
                switch (field.number()) {
                  case 1: seen.push_back(std::to_string(*field.integer())); break;
                  case 2: seen.emplace_back(*field.boolean() ? "yes" : "no"); break;
                  case 3: seen.push_back(*field.text()); break;
                  default: seen.push_back(decode_map_entry(*field.message())->key);
                }
                return {};
              }).ok());
  EXPECT_THAT(seen, ElementsAre("-5", "yes", "GPU-ä", "k"));
}

TEST(Wire, SkipsFieldsOfTypesItDoesNotUse) {
  EXPECT_TRUE(read_all("\x0d\x01\x02\x03\x04\x11\x01\x02\x03\x04\x05\x06\x07\x08"sv).ok());
}

TEST(Wire, RefusesWhatIsCutOffOrImpossible) {
  for (const auto bytes :
       {"\x08"sv, "\x08\x80"sv,
        "\x12\x05"
        "abc"sv,
        "\x0d\x01"sv, "\x00\x01"sv, "\x0b\x0c"sv, "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv,
        "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv}) {
    const auto status = read_all(bytes);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::Corrupt);
    EXPECT_THAT(status.error().text(), HasSubstr("protobuf message: "));
  }
}

TEST(Wire, ATextMustBeUtf8AndATypeTheExpectedOne) {
  ProtoReader reader("\x0a\x01\xff\x10\x01"sv);
  ProtoField field;
  ASSERT_TRUE(*reader.next(field));
  EXPECT_EQ(field.text().error().code(), Errc::Corrupt);
  EXPECT_EQ(field.integer().error().code(), Errc::Corrupt);
  ASSERT_TRUE(*reader.next(field));
  EXPECT_EQ(field.message().error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::grpc
