// SPDX-License-Identifier: Apache-2.0
#include "gantry/safe_output.hpp"

#include "base/core/printable.hpp"
#include "base/core/result.hpp"

#include <algorithm>
#include <utility>

namespace gantry::cli {
namespace {

// How many bytes at the end of the text are the beginning of a character of UTF-8.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // inside a character
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

// Line by line, so that one bad byte does not change how other lines are printed.
std::string safe_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\n\t"), text.size());
    auto part = text.substr(0, end);
    const bool newline = end < text.size() && text[end] == '\n';
    const bool windows = newline && part.ends_with('\r');
    if (windows) part.remove_suffix(1);
    out += printable(part);
    if (windows) out += '\r';
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

SafeOutput::SafeOutput(std::FILE* raw)
    : raw_(raw), file_(::fopencookie(this, "w", {nullptr, SafeOutput::write, nullptr, nullptr})) {
  GANTRY_ASSERT(file_ != nullptr);
  std::setvbuf(file_, nullptr, _IONBF, 0);
}

SafeOutput::~SafeOutput() {
  std::fclose(file_);
  const auto rest = printable(pending_);
  std::fwrite(rest.data(), 1, rest.size(), raw_);
}

ssize_t SafeOutput::write(void* self, const char* bytes, size_t size) {
  const bool written = static_cast<SafeOutput*>(self)->write(std::string_view(bytes, size));
  return written ? static_cast<ssize_t>(size) : 0;  // 0 is an error here; errno is the raw stream's
}

bool SafeOutput::write(std::string_view text) {
  auto all = std::exchange(pending_, {}) + std::string(text);
  const auto rest = all.ends_with('\r') ? 1 : unfinished_bytes(all);
  pending_ = all.substr(all.size() - rest);
  all.resize(all.size() - rest);
  const auto safe = safe_lines(all);
  // A cookie cannot see fflush(), so every text is flushed.
  return std::fwrite(safe.data(), 1, safe.size(), raw_) == safe.size() && std::fflush(raw_) == 0;
}

}  // namespace gantry::cli
