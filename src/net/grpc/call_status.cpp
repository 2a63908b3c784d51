// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/call_status.hpp"

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

StatusCode code_of(Errc code) {
  switch (code) {
    case Errc::Invalid: return StatusCode::InvalidArgument;
    case Errc::NotFound: return StatusCode::NotFound;
    case Errc::Exists: return StatusCode::AlreadyExists;
    case Errc::Denied: return StatusCode::PermissionDenied;
    case Errc::Busy: return StatusCode::Unavailable;
    case Errc::Unsupported: return StatusCode::Unimplemented;
    case Errc::Timeout: return StatusCode::DeadlineExceeded;
    case Errc::Corrupt:
    case Errc::TooLarge: return StatusCode::InvalidArgument;
    case Errc::Internal: return StatusCode::Internal;
  }
  return StatusCode::Internal;
}

Errc errc_of(StatusCode code) {
  switch (code) {
    case StatusCode::InvalidArgument:
    case StatusCode::FailedPrecondition:
    case StatusCode::OutOfRange: return Errc::Invalid;
    case StatusCode::NotFound: return Errc::NotFound;
    case StatusCode::AlreadyExists: return Errc::Exists;
    case StatusCode::PermissionDenied:
    case StatusCode::Unauthenticated: return Errc::Denied;
    case StatusCode::ResourceExhausted:
    case StatusCode::Aborted:
    case StatusCode::Unavailable: return Errc::Busy;
    case StatusCode::Unimplemented: return Errc::Unsupported;
    case StatusCode::DeadlineExceeded: return Errc::Timeout;
    case StatusCode::DataLoss: return Errc::Corrupt;
    default: return Errc::Internal;
  }
}

}  // namespace

std::string_view to_string(StatusCode code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames.at(index) : "UNKNOWN";
}

CallStatus to_call_status(const Error& error) {
  return {code_of(error.code()), error.text()};
}

Error to_error(const CallStatus& outcome) {
  return {errc_of(outcome.code),
          outcome.message.empty()
              ? std::string(to_string(outcome.code))
              : fmt::format("{}: {}", to_string(outcome.code), outcome.message)};
}

std::string percent_encode(std::string_view text) {
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

std::string percent_decode(std::string_view text) {
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
