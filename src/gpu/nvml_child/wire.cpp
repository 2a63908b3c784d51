// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/wire.hpp"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace gantry::nvml_child {
namespace {

constexpr std::uint32_t kMagic = 0x53544e47;  // "GNTS"
constexpr std::uint32_t kTextLimit = 4096;
constexpr std::uint32_t kGpuLimit = 256;
constexpr std::uint32_t kListLimit = 8192;  // processes of one GPU

class Writer {
 public:
  template <class T>
  requires(std::integral<T> || std::floating_point<T> || std::is_enum_v<T>) void operator()(
      const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& text) {
    const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), kTextLimit));
    (*this)(size);
    bytes_.append(text, 0, size);
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    (*this)(static_cast<std::uint8_t>(value ? 1 : 0));
    if (value) (*this)(*value);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(static_cast<std::uint32_t>(std::min<std::size_t>(list.size(), kListLimit)));
    std::size_t left = kListLimit;
    for (const auto& item : list) {
      if (left-- == 0) break;
      visit_fields(*this, item);
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  requires(std::integral<T> || std::floating_point<T>) void operator()(T& value) {
    if (!has(sizeof value)) return;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value)) fail("a number that is not finite");
    }
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    (*this)(byte);
    if (byte > 1) fail("a flag that is neither 0 nor 1");
    value = byte == 1;
  }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(T& value) {
    std::underlying_type_t<T> number = 0;
    (*this)(number);
    if (number > static_cast<std::underlying_type_t<T>>(last_of(T{}))) return fail("unknown word");
    value = static_cast<T>(number);
  }
  void operator()(std::string& text) {
    std::uint32_t size = 0;
    (*this)(size);
    if (size > kTextLimit) return fail("a string that is too long");
    if (!has(size)) return;
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool there = false;
    (*this)(there);
    if (there && ok()) (*this)(value.emplace());
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    std::uint32_t count = 0;
    (*this)(count);
    const auto limit = std::is_same_v<T, model::GpuReading> ? kGpuLimit : kListLimit;
    if (count > limit) return fail("a list that is too long");
    for (std::uint32_t i = 0; i < count && ok(); ++i) visit_fields(*this, list.emplace_back());
  }

  bool ok() const { return wrong_ == nullptr; }
  Status end() {
    if (ok() && !bytes_.empty()) fail("more bytes than announced");
    if (ok()) return {};
    return Error(Errc::Corrupt, fmt::format("the NVML child's message has {}", wrong_));
  }

 private:
  static model::RecoveryAction last_of(model::RecoveryAction /*type*/) {
    return model::RecoveryAction::RecoverImexDomain;
  }
  static model::GpuEventKind last_of(model::GpuEventKind /*type*/) {
    return model::GpuEventKind::RecoveryActionChanged;
  }
  bool has(std::size_t size) {
    if (ok() && bytes_.size() < size) fail("an early end");
    return ok();
  }
  void fail(const char* what) {
    if (wrong_ == nullptr) wrong_ = what;
  }

  std::string_view bytes_;
  const char* wrong_ = nullptr;
};

template <class T, class M>
concept Like = std::same_as<std::remove_const_t<T>, M>;

// The members in their order on the wire, once for both directions.
template <class Visit, Like<model::ProcessReading> T>
void visit_fields(Visit& visit, T& v) {
  visit(v.pid), visit(v.memory_bytes), visit(v.utilization_percent);
  visit(v.gpu_instance), visit(v.compute_instance), visit(v.pod_uid), visit(v.container_id);
}

template <class Visit, Like<model::ProfileReading> T>
void visit_fields(Visit& visit, T& v) {
  visit(v.graphics_active), visit(v.sm_active), visit(v.sm_occupancy), visit(v.tensor_active);
  visit(v.dram_active), visit(v.fp64_active), visit(v.fp32_active), visit(v.fp16_active);
  visit(v.pcie_sent_bytes_per_second), visit(v.pcie_received_bytes_per_second);
}

template <class Visit, Like<model::InstanceReading> T>
void visit_fields(Visit& visit, T& v) {
  visit(v.uuid.text), visit(v.gpu_instance), visit(v.compute_instance);
  visit(v.memory_total_bytes), visit(v.memory_used_bytes), visit(v.memory_free_bytes);
  visit(v.memory_reserved_bytes), visit_fields(visit, v.profile);
}

template <class Visit, class T>
void each_counter(Visit& visit, T& v) {
  visit(v.pcie_replays), visit(v.nvlink_bandwidth_total), visit(v.nvlink_crc_flit_errors);
  visit(v.nvlink_crc_data_errors), visit(v.nvlink_replays), visit(v.nvlink_recoveries);
  visit(v.ecc_corrected_volatile), visit(v.ecc_uncorrected_volatile);
  visit(v.ecc_corrected_aggregate), visit(v.ecc_uncorrected_aggregate);
  visit(v.retired_corrected), visit(v.retired_uncorrected), visit(v.retired_pending);
  visit(v.remapped_corrected), visit(v.remapped_uncorrected), visit(v.remap_pending);
  visit(v.remap_failure), visit(v.power_violation_ns), visit(v.thermal_violation_ns);
  visit(v.sync_boost_violation_ns), visit(v.board_limit_violation_ns);
  visit(v.low_utilization_violation_ns), visit(v.reliability_violation_ns);
}

template <class Visit, Like<model::GpuReading> T>
void visit_fields(Visit& visit, T& v) {
  visit(v.uuid.text), visit(v.lost), visit(v.reset_required), visit(v.recovery_action);
  visit(v.clock_reasons), visit(v.memory_total_bytes), visit(v.memory_used_bytes);
  visit(v.memory_free_bytes), visit(v.memory_reserved_bytes), visit(v.temperature_celsius);
  visit(v.memory_temperature_celsius), visit(v.power_milliwatts), visit(v.power_limit_milliwatts);
  visit(v.energy_millijoules), visit(v.utilization_percent), visit(v.memory_utilization_percent);
  visit(v.encoder_percent), visit(v.decoder_percent), visit(v.duty_cycle_percent);
  visit(v.sm_clock_mhz), visit(v.memory_clock_mhz), each_counter(visit, v);
  visit(v.vgpu_license), visit_fields(visit, v.profile), visit(v.instances), visit(v.processes);
}

template <class Visit, Like<ReadingsPayload> T>
void visit_fields(Visit& visit, T& v) {
  visit(v.event_wait_age_ms), visit(v.readings.at_unix_ms), visit(v.readings.gpus);
}

template <class Visit, Like<model::GpuEvent> T>
void visit_fields(Visit& visit, T& v) {
  visit(v.kind), visit(v.gpu.text), visit(v.gpu_instance), visit(v.compute_instance);
  visit(v.data), visit(v.at_unix_ms);
}

template <class T>
std::string written(const T& value) {
  Writer writer;
  visit_fields(writer, value);
  return writer.take();
}

template <class T>
Result<T> read(std::string_view bytes) {
  T value;
  Reader reader(bytes);
  visit_fields(reader, value);
  GANTRY_CHECK(reader.end());
  return value;
}

}  // namespace

std::string to_datagram(const Packet& packet) {
  Writer writer;
  writer(kMagic);
  writer(packet.kind);
  writer(static_cast<std::uint8_t>(packet.last ? 1 : 0));
  writer(std::uint16_t{0});
  auto bytes = writer.take();
  bytes.append(packet.payload);
  return bytes;
}

Result<Packet> from_datagram(std::string_view bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < kHeaderSize || bytes.size() > kHeaderSize + kPayloadLimit)
    return Error(Errc::Corrupt, "the NVML child's message has an impossible size");
  std::memcpy(&magic, bytes.data(), sizeof magic);
  const auto kind = static_cast<unsigned char>(bytes[4]);
  const auto last = static_cast<unsigned char>(bytes[5]);
  if (magic != kMagic || kind > static_cast<unsigned char>(PacketKind::RequestView) || last > 1)
    return Error(Errc::Corrupt, "the NVML child's message is not in our format");
  return Packet{static_cast<PacketKind>(kind), last == 1, bytes.substr(kHeaderSize)};
}

std::string to_bytes(const ReadingsPayload& readings) {
  return written(readings);
}
Result<ReadingsPayload> readings_from(std::string_view bytes) {
  return read<ReadingsPayload>(bytes);
}
std::string to_bytes(const model::GpuEvent& event) {
  return written(event);
}
Result<model::GpuEvent> event_from(std::string_view bytes) {
  return read<model::GpuEvent>(bytes);
}

}  // namespace gantry::nvml_child
