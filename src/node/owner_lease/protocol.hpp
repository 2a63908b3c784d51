// SPDX-License-Identifier: Apache-2.0
// The messages between a command and the agent about the owner of a GPU, on a SOCK_SEQPACKET
// connection. A connection has one lease at most, and the lease ends with the connection.
//
//   command                         agent
//   lease(intent, wait)        ->
//                              <-   waiting(text), any number of times
//                              <-   granted, or refused(code, text)
//   ... the command acts ...
//   settle(intent, outcome)    ->
//                              <-   settled, or refused(code, text)
//
// settle may also come on a new connection, if the agent was replaced meanwhile.
#pragma once

#include "base/core/result.hpp"
#include "gpu/ownership/owner_change.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::owner_lease {

inline constexpr std::string_view kOwnerSocket = "/run/gantry/owner.sock";
inline constexpr std::size_t kMaxMessage = 16'384;
inline constexpr std::size_t kMaxParts = 64;  // of a card with MIG: instances, and their nodes
inline constexpr std::size_t kMaxYielding = 8;
inline constexpr std::size_t kMaxProgramName = 15;  // what /proc/PID/comm keeps of it

struct OwnerRequest {
  enum class Kind : std::uint8_t { Lease, Settle };
  Kind kind = Kind::Lease;
  ownership::OwnerIntent intent;
  std::chrono::milliseconds wait{0};                               // Lease: for the holders to end
  std::vector<std::string> yielding;                               // Lease: see LeaseOptions
  model::GpuUuid uuid;                                             // Lease: empty: not known
  std::optional<ownership::ChangedParts> parts;                    // Lease: nullopt: the whole card
  ownership::ActOutcome outcome = ownership::ActOutcome::Unknown;  // Settle
  bool operator==(const OwnerRequest&) const = default;
};

struct OwnerReply {
  enum class Kind : std::uint8_t { Waiting, Granted, Settled, Refused };
  Kind kind = Kind::Refused;
  Errc code = Errc::Internal;  // Refused
  std::string text;            // Waiting: for whom; Refused: why
  bool operator==(const OwnerReply&) const = default;
};

std::string to_json(const OwnerRequest& request);
std::string to_json(const OwnerReply& reply);
// Corrupt if it is not a message of this version.
Result<OwnerRequest> parse_request(std::string_view text);
Result<OwnerReply> parse_reply(std::string_view text);

}  // namespace gantry::owner_lease
