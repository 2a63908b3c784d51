// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/outcome.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::grpc {
namespace {

constexpr std::array<std::string_view, 17> kNames{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

Code code_of(Errc code) {
  switch (code) {
    case Errc::Invalid: return Code::InvalidArgument;
    case Errc::NotFound: return Code::NotFound;
    case Errc::Exists: return Code::AlreadyExists;
    case Errc::Denied: return Code::PermissionDenied;
    case Errc::Busy: return Code::Unavailable;
    case Errc::Unsupported: return Code::Unimplemented;
    case Errc::Timeout: return Code::DeadlineExceeded;
    case Errc::Corrupt: return Code::InvalidArgument;
    case Errc::Internal: return Code::Internal;
  }
  return Code::Internal;
}

Errc errc_of(Code code) {
  switch (code) {
    case Code::InvalidArgument:
    case Code::FailedPrecondition:
    case Code::OutOfRange: return Errc::Invalid;
    case Code::NotFound: return Errc::NotFound;
    case Code::AlreadyExists: return Errc::Exists;
    case Code::PermissionDenied:
    case Code::Unauthenticated: return Errc::Denied;
    case Code::ResourceExhausted:
    case Code::Aborted:
    case Code::Unavailable: return Errc::Busy;
    case Code::Unimplemented: return Errc::Unsupported;
    case Code::DeadlineExceeded: return Errc::Timeout;
    case Code::DataLoss: return Errc::Corrupt;
    default: return Errc::Internal;
  }
}

}  // namespace

std::string_view to_string(Code code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames.at(index) : "UNKNOWN";
}

Outcome outcome_of(const Error& error) {
  return {code_of(error.code()), error.text()};
}

Error error_of(const Outcome& outcome) {
  return {errc_of(outcome.code),
          outcome.message.empty()
              ? std::string(to_string(outcome.code))
              : fmt::format("{}: {}", to_string(outcome.code), outcome.message)};
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte =
        text[i] == '%' && i + 2 < text.size() ? parse_u64(text.substr(i + 1, 2), 16) : std::nullopt;
    decoded.push_back(byte ? static_cast<char>(*byte) : text[i]);
    if (byte) i += 2;
  }
  return decoded;
}

}  // namespace gantry::grpc
