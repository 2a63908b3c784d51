// SPDX-License-Identifier: Apache-2.0
#include "net/dns/message.hpp"

#include "base/core/text.hpp"
#include "net/dns/message_reader_internal.hpp"
#include "net/dns/name_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::dns {
namespace {

constexpr std::size_t kMaxNameText = 253;
constexpr std::uint16_t kClassInternet = 1;
// Flags in the second 16 bits of a message.
constexpr std::uint16_t kIsResponse = 0x8000;
constexpr std::uint16_t kIsTruncated = 0x0200;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kResponseCode = 0x000F;

enum class ResponseCode : std::uint8_t {
  NoError = 0,
  FormatError = 1,
  ServerFailure = 2,
  NameError = 3,  // NXDOMAIN
  NotImplemented = 4,
  Refused = 5
};

std::string describe_code(std::uint16_t code) {
  switch (static_cast<ResponseCode>(code)) {
    case ResponseCode::FormatError: return "FORMERR, it does not understand the query";
    case ResponseCode::ServerFailure: return "SERVFAIL, it could not find out";
    case ResponseCode::NotImplemented: return "NOTIMP, it does not answer such queries";
    case ResponseCode::Refused: return "REFUSED, it does not answer this machine";
    default: return fmt::format("response code {}", code);
  }
}

bool is_host_name_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kMaxLabelSize &&
         std::all_of(label.begin(), label.end(), is_host_name_byte);
}

void append_u16(std::string& bytes, std::uint16_t value) {
  bytes += static_cast<char>(value >> 8);
  bytes += static_cast<char>(value & 0xFF);
}

struct Alias {
  std::string name;
  std::string target;
};
struct NamedAddress {
  std::string name;
  IpAddress address;
};
struct Records {
  std::vector<Alias> aliases;
  std::vector<NamedAddress> addresses;
};

// The address in a record's data, if the record is one of the wanted type.
std::optional<IpAddress> address_in(const RecordHeader& record, std::string_view data,
                                    RecordType wanted) {
  if (record.type != static_cast<std::uint16_t>(wanted)) return std::nullopt;
  const std::size_t size = wanted == RecordType::A ? 4 : 16;
  if (data.size() != size) return std::nullopt;
  IpAddress address{.family =
                        static_cast<sa_family_t>(wanted == RecordType::A ? AF_INET : AF_INET6)};
  std::transform(data.begin(), data.end(), address.bytes.begin(),
                 [](char c) { return static_cast<unsigned char>(c); });
  return address;
}

// nullopt if the message ends in the middle of a record or a name is not one.
std::optional<Records> read_records(MessageReader& reader, std::size_t count, RecordType wanted) {
  Records records;
  for (std::size_t i = 0; i < std::min(count, kMaxRecords); ++i) {
    auto name = reader.name();
    const auto header = reader.record_header();
    if (!name || !header) return std::nullopt;
    const auto data_begin = reader.offset();
    const auto data = reader.bytes(header->data_size);
    if (!data) return std::nullopt;
    if (header->record_class != kClassInternet) continue;
    if (header->type == static_cast<std::uint16_t>(RecordType::Cname)) {
      auto target = reader.name_at(data_begin);
      if (!target) return std::nullopt;
      records.aliases.push_back({.name = *std::move(name), .target = *std::move(target)});
    } else if (const auto address = address_in(*header, *data, wanted)) {
      records.addresses.push_back({.name = *std::move(name), .address = *address});
    }
  }
  return records;
}

// Follows the aliases from the name in the question to the addresses of the last one. Records of
// other names have no effect.
Result<Response> follow_aliases(const Records& records, std::string name) {
  for (std::size_t step = 0; step <= kMaxAliases; ++step) {
    const auto alias = std::find_if(records.aliases.begin(), records.aliases.end(),
                                    [&](const Alias& one) { return one.name == name; });
    if (alias != records.aliases.end()) {
      name = alias->target;
      continue;
    }
    Response response;
    for (const auto& one : records.addresses) {
      if (one.name == name && response.addresses.size() < kMaxAddresses)
        response.addresses.push_back(one.address);
    }
    return response;
  }
  return Error(Errc::Corrupt,
               fmt::format("the response has more than {} aliases (CNAME) in a row", kMaxAliases));
}

}  // namespace

bool is_host_name(std::string_view name) {
  if (name.size() > kMaxNameText || name.empty()) return false;
  const auto labels = split(name, '.');
  return std::all_of(labels.begin(), labels.end(), is_label);
}

std::string encode_query(std::uint16_t id, std::string_view name, RecordType type) {
  GANTRY_ASSERT(is_host_name(name));
  std::string query;
  append_u16(query, id);
  append_u16(query, kRecursionDesired);
  append_u16(query, 1);                              // one question
  for (int i = 0; i < 3; ++i) append_u16(query, 0);  // no records
  for (const auto label : split(name, '.')) {
    query += static_cast<char>(label.size());
    query += to_lower(label);
  }
  query += '\0';
  append_u16(query, static_cast<std::uint16_t>(type));
  append_u16(query, kClassInternet);
  return query;
}

bool is_response_to(std::string_view message, std::string_view query) {
  if (message.size() < query.size()) return false;
  MessageReader reader(message);
  const auto header = reader.header();
  // The first name of a message has nothing before it that it could point to, so the question is
  // the same bytes. A server may change the case of letters.
  return header && (header->flags & kIsResponse) != 0 && header->questions == 1 &&
         message.substr(0, 2) == query.substr(0, 2) &&
         to_lower(message.substr(kHeaderSize, query.size() - kHeaderSize)) ==
             to_lower(query.substr(kHeaderSize));
}

Result<Response> parse_response(std::string_view message, std::string_view query) {
  GANTRY_ASSERT(is_response_to(message, query));
  MessageReader reader(message);
  const auto header = reader.header();
  auto name = reader.name();
  const auto type = reader.u16();
  const auto record_class = reader.u16();
  GANTRY_ASSERT(header && name && type && record_class);  // the bytes of our own question
  const auto code = static_cast<std::uint16_t>(header->flags & kResponseCode);
  if (code == static_cast<std::uint16_t>(ResponseCode::NameError)) return Response{};
  if (code != static_cast<std::uint16_t>(ResponseCode::NoError))
    return Error(Errc::Busy, fmt::format("the server says {}", describe_code(code)));
  if ((header->flags & kIsTruncated) != 0) return Response{.is_truncated = true};
  const auto records = read_records(reader, header->answers, static_cast<RecordType>(*type));
  if (!records) return Error(Errc::Corrupt, "the response is not a DNS message");
  return follow_aliases(*records, *std::move(name));
}

}  // namespace gantry::dns
