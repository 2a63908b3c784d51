// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "install/kernel_module/kernel_log_internal.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxLogLines = 200;
constexpr std::size_t kMaxReads = 2000;  // a kernel may log faster than we read

}  // namespace

std::string parse_log_record(std::string_view record) {
  const auto semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return "";
  const auto text = record.substr(semicolon + 1);
  return printable(text.substr(0, text.find('\n')));
}

NewKernelLog::NewKernelLog(const sys::Host& machine) {
  auto fd = machine.open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  if (!fd.ok() || ::lseek(fd->get(), 0, SEEK_END) < 0) return;
  fd_ = std::move(*fd);
}

std::vector<std::string> NewKernelLog::read() {
  std::vector<std::string> found;
  std::array<char, 8192> record{};  // the kernel's limit of one record
  for (std::size_t i = 0; i < kMaxReads && found.size() < kMaxLogLines; ++i) {
    if (fd_.get() < 0) break;
    const auto got = ::read(fd_.get(), record.data(), record.size());
    if (got < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: records were overwritten
    if (got <= 0) break;
    auto text = parse_log_record({record.data(), static_cast<std::size_t>(got)});
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

}  // namespace gantry::kernel_module
