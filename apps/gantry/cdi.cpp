// SPDX-License-Identifier: Apache-2.0
// gantry cdi: the CDI specifications that container engines read.
#include "gantry/cdi.hpp"

#include "base/sys/replace_file.hpp"
#include "container/cdi/read.hpp"
#include "container/cdi/spec_text.hpp"
#include "gantry/commands.hpp"
#include "gantry/nvidia_ctk.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

namespace gantry::cli {
namespace {

constexpr AddCommand kCdiCommands[] = {
    add_cdi_generate, add_cdi_refresh, add_cdi_list, add_cdi_validate, add_cdi_transform,
};

constexpr AddCommand kCtkCdiCommands[] = {
    add_ctk_cdi_generate,
    add_ctk_cdi_list,
    add_cdi_transform,
};

Result<std::string> read_standard_input() {
  std::string text;
  char block[65536];
  while (text.size() <= cdi::kMaxSpecBytes) {
    const auto got = ::read(STDIN_FILENO, block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read standard input");
    if (got == 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
  return Error(Errc::Corrupt, "standard input is too large for a specification");
}

}  // namespace

Result<std::string> read_spec_text(const std::string& path) {
  if (path == "-") return read_standard_input();
  GANTRY_TRY(const auto host, sys::Host::at("/"));
  std::error_code none;
  const auto whole = std::filesystem::absolute(path, none);
  if (none) return Error::sys(none.value(), path);
  return host.read(whole.string(), cdi::kMaxSpecBytes);
}

Result<cdi::Spec> read_spec_file(const std::string& path) {
  GANTRY_TRY(const auto text, read_spec_text(path));
  return cdi::load_spec(text, path == "-" ? "standard input" : path);
}

Status print_spec(const cdi::Spec& spec, const std::string& output, Context& context) {
  const auto text = cdi::to_text(spec, cdi::format_of(output));
  if (!output.empty() && output != "-") return sys::replace_file(output, text);
  fmt::print(context.out, "{}", text);
  return {};
}

void add_cdi(CLI::App& app, Context& context, Action& chosen) {
  auto* cdi = app.add_subcommand(
      "cdi", "CDI specifications: how container engines find this machine's devices");
  cdi->require_subcommand(1);
  for (const auto add : kCdiCommands) add(*cdi, context, chosen);
}

void add_ctk_cdi(CLI::App& app, Context& context, Action& chosen) {
  auto* cdi = app.add_subcommand("cdi", "Specifications of the Container Device Interface");
  cdi->require_subcommand(1);
  for (const auto add : kCtkCdiCommands) add(*cdi, context, chosen);
}

}  // namespace gantry::cli
