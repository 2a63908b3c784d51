// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/running_kernel.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxVersionText = 4096;

std::optional<int> leading_number(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto number = parse_u64(text.substr(0, static_cast<std::size_t>(end - text.begin())));
  if (!number || *number > 999) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int> number_after(std::string_view text, std::string_view words) {
  const auto at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  return leading_number(text.substr(at + words.size()));
}

// "gcc", "cc", "gcc-12", "x86_64-linux-gnu-gcc-12"
bool is_gcc(std::string_view program) {
  const auto dash = program.rfind('-');
  if (dash != std::string_view::npos && all_digits(program.substr(dash + 1)))
    program = program.substr(0, dash);
  return program == "cc" || program == "gcc" || program.ends_with("-gcc");
}

// The text behind a group of parentheses that it begins with, which may contain further ones.
std::string_view behind_parentheses(std::string_view text) {
  if (!text.starts_with('(')) return text;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return trim(text.substr(at + 1));
  }
  return {};
}

// What /proc/version says behind the person and machine that built the kernel.
std::string_view compiler_part(std::string_view version_text) {
  const auto builder = version_text.find('(');
  if (builder == std::string_view::npos) return {};
  const auto rest = behind_parentheses(version_text.substr(builder));
  return rest.starts_with('(') ? rest.substr(1) : std::string_view();
}

}  // namespace

std::optional<int> compiler_major(std::string_view version_output) {
  if (const auto clang = number_after(version_output, "clang version ")) return clang;
  if (const auto gcc = number_after(version_output, "gcc version ")) return gcc;
  // "x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0"
  const auto program = version_output.substr(0, version_output.find(' '));
  if (!is_gcc(program)) return std::nullopt;
  return leading_number(behind_parentheses(trim(version_output.substr(program.size()))));
}

RunningKernel parse_running_kernel(std::string_view version_text, std::string_view release) {
  RunningKernel kernel;
  kernel.version_text = trim(version_text.substr(0, kMaxVersionText));
  kernel.release = trim(release);
  const auto words = split(kernel.version_text, ' ');
  if (kernel.release.empty() && words.size() > 2 && words[1] == "version")
    kernel.release = words[2];
  const auto compiler = compiler_part(kernel.version_text);
  const auto major = compiler_major(compiler);
  (contains(compiler, "clang version ") ? kernel.clang_major : kernel.gcc_major) = major;
  kernel.uses_lld = contains(compiler, "LLD ");
  return kernel;
}

RunningKernel with_compiler_of(RunningKernel kernel, const KernelBuildDir& headers) {
  if (!headers.gcc_major && !headers.clang_major) return kernel;
  kernel.gcc_major = headers.gcc_major;
  kernel.clang_major = headers.clang_major;
  kernel.uses_lld = headers.uses_lld;
  return kernel;
}

Result<RunningKernel> read_running_kernel(const sys::Host& host) {
  GANTRY_TRY(const auto text, host.read("/proc/version", kMaxVersionText));
  auto kernel =
      parse_running_kernel(text, host.read_value("/proc/sys/kernel/osrelease").value_or(""));
  if (kernel.release.empty() || contains(kernel.release, "/"))
    return Error(Errc::Corrupt, fmt::format("{} does not name the kernel's release",
                                            host.outside("/proc/version")));
  return kernel;
}

}  // namespace gantry::kernel_module
