// SPDX-License-Identifier: Apache-2.0
#include "gantry/agent.hpp"

#include "agent/agent.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<std::string> read_file(const std::string& path) {
  GANTRY_TRY(const auto machine, sys::Host::at("/"));
  return machine.read(path);
}

int failed(const Error& error, std::string_view name, int status, std::FILE* err) {
  fmt::print(err, "{}: {}\n", name, error.text());
  return status;
}

int run(offer::Program program, std::string_view name, int argc, char** argv, std::FILE* out,
        std::FILE* err) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto read_again = [program, arguments] {
    return offer::read_options(program, arguments, environment, read_file);
  };
  auto read = read_again();
  if (!read.ok()) return failed(read.error(), name, kUsage, err);
  if (read->help || read->version) {
    fmt::print(out, "{}", read->help ? offer::help_text(program) : "gantry " GANTRY_VERSION "\n");
    return kOk;
  }
  const agent::Log log(read->options.log.format, read->options.log.verbosity);
  for (const auto& note : read->notes) log.warning("options", note);
  auto host = sys::Host::at(read->options.root);
  if (!host.ok()) return failed(host.error(), name, kProblem, err);
  auto made = agent::Agent::make(*std::move(host), read->options, log,
                                 [read_again]() -> Result<offer::Options> {
                                   GANTRY_TRY(auto again, read_again());
                                   return std::move(again.options);
                                 });
  if (!made.ok()) return failed(made.error(), name, kProblem, err);
  const auto ended = (*made)->run();
  return ended.ok() ? kOk : failed(ended.error(), name, kProblem, err);
}

}  // namespace

int agent(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run(offer::Program::Agent, "gantry agent", argc, argv, out, err);
}
int device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run(offer::Program::Plugin, "nvidia-device-plugin", argc, argv, out, err);
}
int gke_device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run(offer::Program::Gke, "nvidia-gpu-device-plugin", argc, argv, out, err);
}

void add_agent(CLI::App& app, Context& /*context*/, Action& /*chosen*/) {
  app.add_subcommand("agent",
                     "Offer this node's GPUs to its kubelet, watch their health, show metrics")
      ->footer("Options: gantry agent --help");
}

}  // namespace gantry::cli
