// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "sharing/daemon/share_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::daemon {
namespace {

constexpr double kParts = 10'000;  // the unit of time parts in the JSON

template <class List, class Print>
std::string array_of(const List& list, Print print) {
  std::string text = "[";
  for (const auto& one : list) {
    if (text.size() > 1) text += ',';
    text += print(one);
  }
  return text + "]";
}

std::int64_t parts_of(double value) {
  return static_cast<std::int64_t>(std::clamp(value, -1.0, 1'000.0) * kParts);
}

std::string stranger_json(const UnmanagedProcess& stranger) {
  return fmt::format(R"({{"pid":{},"memoryUsed":{},"command":{}}})", stranger.pid,
                     stranger.memory_used, json::quote(stranger.command));
}

std::string gpu_json(const GpuState& gpu) {
  return fmt::format(
      R"({{"uuid":{},"memoryTotal":{},"memoryLimit":{},"memoryHeld":{},"memoryUsed":{},)"
      R"("part":{},"used":{},"measured":{},"gate":{},"busy":{},"strangers":{}}})",
      json::quote(gpu.uuid.text), gpu.memory_total, gpu.memory_limit, gpu.memory_held,
      gpu.memory_used, parts_of(gpu.part), parts_of(gpu.used), parts_of(gpu.measured),
      json::quote(gpu.gate), gpu.busy, array_of(gpu.unmanaged, stranger_json));
}

std::string process_gpu_json(const ProcessGpuState& gpu) {
  return fmt::format(
      R"({{"memoryHeld":{},"memoryUsed":{},"launches":{},"contexts":{},"waiting":{},"busy":{}}})",
      gpu.memory_held, gpu.memory_used, gpu.launches, gpu.contexts, gpu.waiting, gpu.busy);
}

std::string process_json(const ProcessState& process) {
  return fmt::format(R"({{"pid":{},"innerPid":{},"command":{},"gpus":{}}})", process.pid,
                     process.inner_pid, json::quote(process.command),
                     array_of(process.gpus, process_gpu_json));
}

std::string finding_json(const FindingState& finding) {
  return fmt::format(R"({{"atUnixMs":{},"kind":{},"pid":{},"text":{},"stopped":{}}})",
                     finding.at_unix_ms, json::quote(finding.kind), finding.pid,
                     json::quote(finding.text), finding.stopped);
}

// Reads values from an object, and remembers whether all were present.
class Taker {
 public:
  explicit Taker(json::Value from) : from_(from), good_(from.is(json::Kind::Object)) {}

  bool good() const { return good_; }
  std::string text(std::string_view key) { return take(from_[key].string()); }
  bool flag(std::string_view key) { return take(from_[key].boolean()); }
  std::uint64_t u64(std::string_view key) { return take(from_[key].u64()); }
  std::int64_t i64(std::string_view key) { return take(from_[key].i64()); }
  double part(std::string_view key) { return static_cast<double>(i64(key)) / kParts; }
  std::uint32_t u32(std::string_view key) {
    const auto value = u64(key);
    if (value > UINT32_MAX) good_ = false;
    return static_cast<std::uint32_t>(value);
  }
  bool has(std::string_view key) const { return static_cast<bool>(from_[key]); }
  template <class Read>
  auto list(std::string_view key, Read read) {
    std::vector<decltype(read(std::declval<Taker&>()))> all;
    if (!from_[key].is(json::Kind::Array)) {
      good_ = false;
      return all;
    }
    for (const auto value : from_[key]) {
      Taker taker(value);
      all.push_back(read(taker));
      good_ = good_ && taker.good();
    }
    return all;
  }

 private:
  template <class T>
  T take(std::optional<T> value) {
    if (!value) good_ = false;
    return value.value_or(T{});
  }
  json::Value from_;
  bool good_;
};

UnmanagedProcess stranger_from(Taker& taker) {
  return {.pid = taker.u32("pid"),
          .memory_used = taker.u64("memoryUsed"),
          .command = taker.text("command")};
}

// A daemon keeps running while its clients are upgraded, so keys that an older daemon does not send
// are optional.
std::vector<UnmanagedProcess> strangers_from(Taker& taker) {
  if (!taker.has("strangers")) return {};
  return taker.list("strangers", stranger_from);
}

GpuState gpu_from(Taker& taker) {
  return {.uuid = {taker.text("uuid")},
          .memory_total = taker.u64("memoryTotal"),
          .memory_limit = taker.u64("memoryLimit"),
          .memory_held = taker.u64("memoryHeld"),
          .memory_used = taker.u64("memoryUsed"),
          .part = taker.part("part"),
          .used = taker.part("used"),
          .measured = taker.part("measured"),
          .gate = taker.text("gate"),
          .busy = taker.flag("busy"),
          .unmanaged = strangers_from(taker)};
}

ProcessGpuState process_gpu_from(Taker& taker) {
  return {.memory_held = taker.u64("memoryHeld"),
          .memory_used = taker.u64("memoryUsed"),
          .launches = taker.u64("launches"),
          .contexts = taker.u32("contexts"),
          .waiting = taker.u32("waiting"),
          .busy = taker.flag("busy")};
}

ProcessState process_from(Taker& taker) {
  return {.pid = taker.u32("pid"),
          .inner_pid = taker.u32("innerPid"),
          .command = taker.text("command"),
          .gpus = taker.list("gpus", process_gpu_from)};
}

FindingState finding_from(Taker& taker) {
  return {.at_unix_ms = taker.i64("atUnixMs"),
          .kind = taker.text("kind"),
          .pid = taker.u32("pid"),
          .text = taker.text("text"),
          .stopped = taker.flag("stopped")};
}

}  // namespace

std::string to_json(const ShareState& state) {
  return fmt::format(
      R"({{"share":{},"directory":{},"held":{},"refused":{},"gpus":{},"processes":{},)"
      R"("moreProcesses":{},"findings":{}}})",
      policy::to_json(state.share), json::quote(state.directory), state.held, state.refused,
      array_of(state.gpus, gpu_json), array_of(state.processes, process_json), state.more_processes,
      array_of(state.findings, finding_json));
}

Result<ShareState> state_from_json(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)));
  Taker taker(document.root());
  ShareState state;
  state.directory = taker.text("directory");
  state.held = taker.flag("held");
  state.refused = taker.u64("refused");
  state.gpus = taker.list("gpus", gpu_from);
  state.processes = taker.list("processes", process_from);
  if (taker.has("moreProcesses")) state.more_processes = taker.u64("moreProcesses");
  state.findings = taker.list("findings", finding_from);
  const auto share = document["share"];
  if (!taker.good() || !share) return Error(Errc::Corrupt, "this is not the state of a share");
  GANTRY_TRY(state.share, policy::share_from_json(share.raw()));
  return state;
}

}  // namespace gantry::daemon
