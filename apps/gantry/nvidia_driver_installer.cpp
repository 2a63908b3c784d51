// SPDX-License-Identifier: Apache-2.0
#include "gantry/nvidia_driver_installer.hpp"

#include "base/core/printable.hpp"
#include "gantry/driver_commands.hpp"
#include "install/google_installer/installer.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

using google_installer::Environment;

struct InstallerFlags {
  DriverFlags driver;
  bool dry_run = false;
};

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A log shows each line when it is true, not when a buffer is full.
google_installer::PrintLines lines_to(const Context& context) {
  return [&context](std::string_view lines) {
    fmt::print(context.out, "{}", printable_lines(lines));
    std::fflush(context.out);
  };
}

Result<int> dry_run(const sys::Host& host, const preflight::DriverRequest& request,
                    const Environment& environment, const driver_setup::SetupOptions& options,
                    const Context& context) {
  GANTRY_CHECK(google_installer::check_kernel(host, environment));
  if (!context.json)
    google_installer::check_cached_version(host, request, environment, lines_to(context));
  return dry_install(host, request, options, context);
}

Result<int> run_installer(const InstallerFlags& flags, const Environment& environment,
                          Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(auto request, request_of(flags.driver));
  GANTRY_CHECK(complete(request, environment));
  google_installer::use_existing_archive(host, environment, request);
  constexpr std::string_view kCommand = "gantry driver install";
  if (flags.dry_run)
    return dry_run(host, request, environment, driver_options(host, context, request, kCommand),
                   context);
  catch_termination(context);
  ShownDownload download(context);
  GANTRY_TRY(const auto effects, driver_effects(host, context, &download));
  const auto options = driver_options(host, context, request, kCommand);
  GANTRY_TRY(const auto image, sys::Host::at("/"));
  GANTRY_TRY(
      const auto report,
      google_installer::install(host, request, environment, options, *effects, lines_to(context),
                                google_installer::headers_by_apt(host, image, options.stop->fd())));
  for (const auto& note : report.notes) print_note(printable(note), context);
  return kOk;
}

void add_installer(CLI::App& app, Context& context, const Result<Environment>& environment,
                   Action& chosen) {
  auto flags = std::make_shared<InstallerFlags>();
  if (environment.ok()) {
    context.root = environment->root;
    flags->driver.request.directory = environment->host_directory;
  }
  auto* command =
      app.add_subcommand("install", "Install the driver that the variables name (the default)");
  add_driver_machine(*command, context);
  add_driver_flags(*command, flags->driver);
  command->add_flag("--dry-run", flags->dry_run, "Print findings and steps, do nothing");
  add_examples(*command,
               "  NVIDIA_DRIVER_VERSION=580.159.04 NVIDIA_DRIVER_SHA256=HEX "
               "nvidia-driver-installer  # in a pod\n"
               "  sudo ROOT_MOUNT_DIR=/ NVIDIA_DRIVER_VERSION=460.56 nvidia-driver-installer "
               "--run FILE\n");
  command->callback([=, &chosen, &environment] {
    chosen = [=, &environment](Context& c) -> Result<int> {
      GANTRY_CHECK(environment);
      return run_installer(*flags, *environment, c);
    };
  });
}

}  // namespace

int nvidia_driver_installer(int argc, char** argv, std::FILE* out, std::FILE* err) {
  Context context = context_of_process(out, err);
  CLI::App app("Google's nvidia-driver-installer, answered by gantry.", "nvidia-driver-installer");
  const auto environment = google_installer::read_environment(environment_value);
  Action chosen;
  add_installer(app, context, environment, chosen);
  std::string install = "install";  // there is no other command
  std::vector<char*> words(argv, argv + argc);
  if (argc == 1 || std::string_view(argv[1]) != install)
    words.insert(words.begin() + 1, install.data());
  words.push_back(nullptr);
  return run_program(app, static_cast<int>(words.size()) - 1, words.data(), context, chosen);
}

}  // namespace gantry::cli
