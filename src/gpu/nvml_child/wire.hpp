// SPDX-License-Identifier: Apache-2.0
// The messages between gantry-nvml and its parent over a SOCK_SEQPACKET pair. Both run on one
// machine and have the same probe::kNvmlProtocol, so numbers are sent as they are in memory. But a
// library in the child may overwrite the child's memory, so the parent checks every length and
// every enumerator.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/readings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::nvml_child {

enum class PacketKind : std::uint8_t {
  View,             // child: a probe::NvmlView
  Readings,         // child
  Event,            // child
  RequestReadings,  // parent: one byte, the depth
  RequestView       // parent
};

struct Packet {  // one datagram; a message is one or more, the last one marked
  PacketKind kind = PacketKind::View;
  bool last = true;
  std::string_view payload;
};

inline constexpr std::size_t kPayloadLimit = 60'000;  // below every default socket buffer
inline constexpr std::size_t kHeaderSize = 8;
inline constexpr std::size_t kReadingsLimit = std::size_t{4} << 20;

std::string to_datagram(const Packet& packet);
Result<Packet> from_datagram(std::string_view bytes);  // its payload points into `bytes`

struct ReadingsPayload {
  model::Readings readings;
  std::uint32_t event_wait_age_ms = 0;  // since NVML last returned from waiting for events
  bool operator==(const ReadingsPayload&) const = default;
};

std::string to_bytes(const ReadingsPayload& readings);
Result<ReadingsPayload> readings_from(std::string_view bytes);
std::string to_bytes(const model::GpuEvent& event);
Result<model::GpuEvent> event_from(std::string_view bytes);

}  // namespace gantry::nvml_child
