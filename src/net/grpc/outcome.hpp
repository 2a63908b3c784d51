// SPDX-License-Identifier: Apache-2.0
// How a call ended, in gRPC's words.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::grpc {

enum class Code : std::uint8_t {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
  Unauthenticated = 16
};

std::string_view to_string(Code code);  // "UNAVAILABLE"

struct Outcome {
  Code code = Code::Ok;
  std::string message;
  bool ok() const { return code == Code::Ok; }
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const Error& error);
// Of a failed call. Text: "UNAVAILABLE: message".
Error error_of(const Outcome& outcome);

// grpc-message travels in a header: printable ASCII, everything else as %XX.
std::string percent_encoded(std::string_view text);
std::string percent_decoded(std::string_view text);  // a lone % stays as it is

}  // namespace gantry::grpc
