// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/kernel_log.hpp"

#include "base/core/text.hpp"
#include "gpu/health/xid.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::doctor {
namespace {

constexpr std::size_t kMaxKernelLogBytes = std::size_t{8} << 20;
constexpr int kMaxReads = 1 << 17;

// One read() gives one record; EPIPE says that records were overwritten while we read.
std::optional<std::string> read_records(const sys::Host& host) {
  const auto fd = host.open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd.ok()) return std::nullopt;
  std::string text;
  std::array<char, 8192> buffer{};
  for (int reads = 0; reads < kMaxReads; ++reads) {
    const auto got = ::read(fd->get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got < 0 && errno != EAGAIN) return std::nullopt;
    if (got <= 0) break;
    if (text.size() > kMaxKernelLogBytes) text.erase(0, kMaxKernelLogBytes / 2);
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// "6,339,5140900,-;message": drops the prefix up to the semicolon, and continuation lines.
std::string messages_of(std::string_view records) {
  std::string out;
  for (auto line : lines(records)) {
    if (line.starts_with(' ')) continue;
    const auto prefix = line.substr(0, line.find(';'));
    const bool is_record = prefix.size() < line.size() &&
                           std::count(prefix.begin(), prefix.end(), ',') >= 2 &&
                           parse_u64(prefix.substr(0, prefix.find(','))).has_value();
    out += is_record ? line.substr(prefix.size() + 1) : line;
    out += '\n';
  }
  return out;
}

// How serious the Xid is. The log does not tell whether it was repaired in the meantime.
XidClass severity_of(health::XidClass kind) {
  switch (kind) {
    case health::XidClass::Application: return XidClass::Application;
    case health::XidClass::Watch:
    case health::XidClass::Contained: return XidClass::Notable;
    case health::XidClass::Reset:
    case health::XidClass::Drain:
    case health::XidClass::Reboot:
    case health::XidClass::Replace: break;
  }
  return XidClass::Critical;
}

}  // namespace

std::optional<std::string> read_kernel_log(const sys::Host& host) {
  if (auto records = read_records(host)) return messages_of(*records);
  auto file = host.read("/var/log/dmesg", kMaxKernelLogBytes);
  if (!file.ok()) return std::nullopt;
  return *std::move(file);
}

std::vector<Xid> find_xids(std::string_view log) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  std::vector<Xid> found;
  for (auto line : lines(log)) {
    const auto at = line.find(kMark);
    if (at == std::string_view::npos) continue;
    auto rest = line.substr(at + kMark.size());
    const auto close = rest.find("):");
    if (close == std::string_view::npos) continue;
    auto pci = rest.substr(0, close);
    if (pci.starts_with("PCI:")) pci.remove_prefix(4);
    rest = trim(rest.substr(close + 2));
    const auto comma = rest.find(',');
    const auto number = parse_u64(trim(rest.substr(0, comma)));
    if (!number || *number > 9999) continue;
    const auto text = comma == std::string_view::npos ? "" : trim(rest.substr(comma + 1));
    found.push_back({std::string(pci), static_cast<unsigned>(*number), std::string(text)});
  }
  return found;
}

XidMeaning xid_meaning(unsigned xid) {
  if (const auto known = health::find_xid_meaning(xid))
    return {severity_of(known->kind), known->meaning, known->advice};
  return {XidClass::Notable, "an error of the driver or the GPU", "look at the lines around it"};
}

}  // namespace gantry::doctor
