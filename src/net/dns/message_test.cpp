// SPDX-License-Identifier: Apache-2.0
#include "net/dns/message.hpp"

#include "net/dns/name_files.hpp"
#include "net/dns/name_server_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::dns {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string query() {
  return encode_query(0x1234, "api.example", RecordType::A);
}

Result<Response> read(const std::vector<std::string>& records, std::uint16_t flags = 0) {
  return parse_response(response_to(query(), records, flags), query());
}

TEST(DnsMessage, AQueryIsOneQuestionInLowerCase) {
  const std::string expected(
      "\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
      "\x01"
      "a\x07"
      "example\x00\x00\x1C\x00\x01",
      27);
  EXPECT_EQ(encode_query(7, "A.Example", RecordType::Aaaa), expected);
}

TEST(DnsMessage, HostNamesAreLettersDigitsHyphensAndUnderscores) {
  EXPECT_TRUE(is_host_name("a"));
  EXPECT_TRUE(is_host_name("_x-1.example"));
  EXPECT_TRUE(is_host_name(std::string(63, 'a')));
  for (const auto& name : {std::string(), std::string("a..b"), std::string(".a"), std::string("a."),
                           std::string(64, 'a'), std::string("a b"), std::string("a\0b", 3),
                           std::string("bücher.example")})
    EXPECT_FALSE(is_host_name(name)) << name;
  std::string longest = std::string(63, 'a') + "." + std::string(63, 'b') + "." +
                        std::string(63, 'c') + "." + std::string(61, 'd');
  EXPECT_TRUE(is_host_name(longest));
  EXPECT_FALSE(is_host_name(longest + "d"));
}

TEST(DnsMessage, AResponseHasTheIdAndTheQuestionOfItsQuery) {
  EXPECT_TRUE(is_response_to(response_to(query(), {}), query()));
  EXPECT_FALSE(is_response_to(query(), query())) << "it is a query";
  EXPECT_FALSE(
      is_response_to(response_to(encode_query(0x1235, "api.example", RecordType::A), {}), query()));
  EXPECT_FALSE(
      is_response_to(response_to(encode_query(0x1234, "apj.example", RecordType::A), {}), query()));
  EXPECT_FALSE(is_response_to(
      response_to(encode_query(0x1234, "api.example", RecordType::Aaaa), {}), query()));
  EXPECT_FALSE(is_response_to(response_to(query(), {}).substr(0, 20), query()));
  EXPECT_FALSE(is_response_to("", query()));
}

TEST(DnsMessage, AServerMayChangeTheCaseOfTheQuestion) {
  auto message = response_to(query(), {a_record("192.0.2.1")});
  message[13] = 'A';
  ASSERT_TRUE(is_response_to(message, query()));
  EXPECT_THAT(parse_response(message, query())->addresses, ElementsAre(*parse_ip("192.0.2.1")));
}

TEST(DnsMessage, ReadsAddressesOfTheNameAndTypeInTheQuestion) {
  const auto response =
      read({a_record("192.0.2.1"), a_record("192.0.2.9", name_bytes("other.example")),
            aaaa_record("2001:db8::1"), a_record("192.0.2.2", name_bytes("API.example"))});
  ASSERT_TRUE(response.ok()) << response.error().text();
  EXPECT_THAT(response->addresses, ElementsAre(*parse_ip("192.0.2.1"), *parse_ip("192.0.2.2")));
}

TEST(DnsMessage, FollowsAliasesInAnyOrder) {
  const auto second = name_bytes("b.example");
  const auto third = name_bytes("c.example");
  const auto response = read({a_record("192.0.2.3", third), cname_record(second, third),
                              cname_record(kQuestionName, second)});
  ASSERT_TRUE(response.ok()) << response.error().text();
  EXPECT_THAT(response->addresses, ElementsAre(*parse_ip("192.0.2.3")));
}

TEST(DnsMessage, RejectsALoopOfAliases) {
  const auto second = name_bytes("b.example");
  const auto response =
      read({cname_record(kQuestionName, second), cname_record(second, kQuestionName)});
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code(), Errc::Corrupt);
  EXPECT_THAT(response.error().text(), HasSubstr("more than 16 aliases"));
}

TEST(DnsMessage, RejectsPointersThatDoNotLeadBack) {
  const auto here = static_cast<char>(query().size());  // the record's own name
  const auto ahead = static_cast<char>(query().size() + 2);
  for (const auto target : {here, ahead, '\xFF'}) {
    const auto response = read({a_record("192.0.2.1", std::string{'\xC0', target})});
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code(), Errc::Corrupt);
  }
}

TEST(DnsMessage, RejectsNamesThatAreTooLong) {
  std::string name;
  for (int i = 0; i < 4; ++i) name += '\x3F' + std::string(63, 'a');
  EXPECT_FALSE(read({a_record("192.0.2.1", name + '\0')}).ok()) << "256 bytes of labels";
  EXPECT_FALSE(read({a_record("192.0.2.1", "\x40" + std::string(64, 'a') + '\0')}).ok());
}

TEST(DnsMessage, RejectsAMessageThatEndsTooEarly) {
  const auto whole = response_to(query(), {a_record("192.0.2.1")});
  for (auto size = query().size(); size < whole.size(); ++size)
    EXPECT_FALSE(parse_response(whole.substr(0, size), query()).ok()) << size;
  EXPECT_TRUE(parse_response(whole + "more", query()).ok());
}

TEST(DnsMessage, IgnoresAddressesOfAnotherLength) {
  const auto response = read({record(kQuestionName, 1, "123"), record(kQuestionName, 1, "12345")});
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->addresses, SizeIs(0));
}

TEST(DnsMessage, KeepsABoundedNumberOfAddresses) {
  const std::vector<std::string> records(4000, a_record("192.0.2.1"));
  const auto response = read(records);
  ASSERT_TRUE(response.ok()) << response.error().text();
  EXPECT_THAT(response->addresses, SizeIs(kMaxAddresses));
}

TEST(DnsMessage, ANameThatDoesNotExistHasNoAddress) {
  EXPECT_EQ(*read({}, 3), Response{});
}

TEST(DnsMessage, SaysWhatTheServerCouldNotDo) {
  for (const auto& [code, text] : {std::pair<std::uint16_t, const char*>{1, "FORMERR"},
                                   {2, "SERVFAIL"},
                                   {4, "NOTIMP"},
                                   {5, "REFUSED"},
                                   {9, "code 9"}}) {
    const auto response = read({}, code);
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code(), Errc::Busy);
    EXPECT_THAT(response.error().text(), HasSubstr(text));
  }
}

TEST(DnsMessage, SaysThatItIsTruncated) {
  EXPECT_TRUE(read({a_record("192.0.2.1")}, 0x0200)->is_truncated);
}

}  // namespace
}  // namespace gantry::dns
