// SPDX-License-Identifier: Apache-2.0
// How a call ended, in gRPC's words.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::grpc {

enum class StatusCode : std::uint8_t {
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

std::string_view to_string(StatusCode code);  // "UNAVAILABLE"

struct CallStatus {
  StatusCode code = StatusCode::Ok;
  std::string message;
  bool ok() const { return code == StatusCode::Ok; }
  bool operator==(const CallStatus&) const = default;
};

CallStatus to_call_status(const Error& error);
// The error of a failed call. Its text is "UNAVAILABLE: message".
Error to_error(const CallStatus& outcome);

// grpc-message travels in a header: printable ASCII, everything else as %XX.
std::string percent_encode(std::string_view text);
std::string percent_decode(std::string_view text);  // a % that is not followed by two digits stays

}  // namespace gantry::grpc
