// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "container/runtime/classic/prestart.hpp"
#include "container/runtime/persona/entry_points.hpp"
#include "container/runtime/persona/harden.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace gantry::runtime {
namespace {

constexpr const char* kName = "nvidia-container-runtime-hook";

// The text may contain words of the image.
void tell(std::string_view text) {
  fmt::print(stderr, "{}: {}\n", kName, printable(text));
}

int fail(std::string_view text) {
  tell(text);
  return 1;
}

Result<std::string> read_stdin(std::size_t limit) {
  std::string text;
  std::array<char, 16384> part{};
  for (;;) {
    const auto got = ::read(STDIN_FILENO, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "reading the container's state from stdin");
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > limit)
      return Error(Errc::Corrupt, "the container's state on stdin is too large");
  }
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

int become(ConfigureCall call) {
  const auto arguments = pointers(call.arguments);
  const auto environment = pointers(call.environment);
  ::execve(call.program.c_str(), arguments.data(), environment.data());
  return fail(Error::sys(errno, fmt::format("exec {}", call.program)).text());
}

int run_prestart(const PrestartOptions& options) {
  const auto state = read_stdin(oci::kMaxStateBytes);
  if (!state.ok()) return fail(state.error().text());
  std::vector<std::string> warnings;
  auto call = prestart(options, *state, warnings);
  for (const auto& warning : warnings) tell(warning);
  if (!call.ok()) return fail(call.error().text());
  if (!*call) return 0;
  if (options.debug) {
    tell(fmt::format("exec {} {}", (*call)->program, fmt::join((*call)->arguments, " ")));
  }
  return become(**std::move(call));
}

void print_usage(std::FILE* out) {
  fmt::print(out,
             "Usage: {} [-config FILE] [-root DIR] [-debug] [-version] COMMAND\n\n"
             "  prestart   add the requested GPUs to a container (its state on stdin)\n"
             "  poststart  do nothing\n"
             "  poststop   do nothing\n",
             kName);
}

}  // namespace

int runtime_hook_main(int argc, char** argv) {
  harden();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto options = parse_prestart(arguments);
  if (!options.ok()) return fail(options.error().text());
  if (options->version) {
    fmt::print("NVIDIA Container Runtime Hook version {} (gantry)\n", GANTRY_VERSION);
    return 0;
  }
  if (options->help) {
    print_usage(stdout);
    return 0;
  }
  if (options->command == "prestart") return run_prestart(*options);
  if (options->command == "poststart" || options->command == "poststop") return 0;
  print_usage(stderr);
  return 2;
}

}  // namespace gantry::runtime
