// SPDX-License-Identifier: Apache-2.0
// gantry driver: the kernel driver of this machine's GPUs, from an archive, packages or elsewhere.
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "gantry/commands.hpp"
#include "gantry/driver_commands.hpp"
#include "gantry/terminal.hpp"
#include "install/driver_package/openpgp_key.hpp"
#include "install/driver_package/run_header.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

constexpr std::uint64_t kUnknownTotalStep = std::uint64_t{16} << 20;

CLI::Option* add_path(CLI::App& command, const char* name, std::string& value, const char* help,
                      const char* type = "FILE") {
  return command.add_option(name, value, help)->type_name(type)->transform(absolute_path());
}

void add_source_flags(CLI::App& command, DriverFlags& flags) {
  auto& request = flags.request;
  command
      .add_option("--version", request.version,
                  "Version of the driver: 580.159.04; for packages also a branch: 580")
      ->type_name("VERSION");
  command
      .add_option("--source", flags.source,
                  "run: NVIDIA's archive; packages: of the distribution; precompiled: an archive "
                  "and modules built elsewhere; grid: the guest driver of vGPUs; nvidia-container: "
                  "NVIDIA's driver container installs it")
      ->type_name("SOURCE")
      ->check(CLI::IsMember({"run", "packages", "precompiled", "grid", "nvidia-container"})
                  .description(""))
      ->capture_default_str();
  add_path(command, "--run", request.run_file, "Archive on this machine (NVIDIA-Linux-*.run)");
  command.add_option("--url", request.url, "Archive to download")->type_name("URL");
  command.add_option("--mirror", request.mirror, "Download from here instead of NVIDIA's server")
      ->type_name("URL");
  command
      .add_option("--sha256", request.sha256, "Digest of the archive, from a source that you trust")
      ->type_name("HEX");
  command.add_flag("--trust-download-without-digest", request.trust_download_without_digest,
                   "Install what the server sends, unchecked");
  command
      .add_option("--repository-key", request.repository_keys,
                  "Fingerprint of the key that signs the vendor's repository, or a file with it "
                  "(--source packages); may be repeated")
      ->type_name("KEY")
      ->transform(CLI::Validator(
          [](std::string& key) {
            return driver_package::parse_fingerprint(key) ? std::string() : absolute_path()(key);
          },
          ""));
  command.add_flag("--trust-repository-key", request.trust_repository_key,
                   "Trust the key that the repository serves, unchecked");
}

void add_module_flags(CLI::App& command, DriverFlags& flags) {
  auto& request = flags.request;
  command
      .add_option("--flavour", flags.flavour,
                  "Kernel modules: open or proprietary; default: what suits the GPUs")
      ->type_name("FLAVOUR")
      ->check(CLI::IsMember({"open", "proprietary"}).description(""));
  command.add_option("--directory", request.directory, "Directory of the driver's files")
      ->type_name("DIR")
      ->transform(absolute_path())
      ->capture_default_str();
  command
      .add_option("--kernel", request.kernel,
                  "Build for this kernel instead of the running one, and load nothing")
      ->type_name("RELEASE");
  add_path(command, "--patch", request.patch, "Patch for the source of the modules");
  add_path(command, "--modules", request.modules,
           "Directory with modules for this kernel (--source precompiled)", "DIR");
  command
      .add_option("--modules-sha256", request.modules_sha256,
                  "Digest of the list of their digests (DIR/SHA256SUMS), from a source that you "
                  "trust")
      ->type_name("HEX");
  command.add_flag("--trust-modules-without-digest", request.trust_modules_without_digest,
                   "Load modules that no list of digests names");
  command
      .add_option("--sign-key", request.sign_key,
                  "Sign the modules with this private key (a path or pkcs11: URI)")
      ->type_name("KEY");
  add_path(command, "--sign-certificate", request.sign_certificate, "Certificate of the key");
  add_path(command, "--gridd-conf", request.gridd_conf, "Licence configuration (--source grid)");
  add_path(command, "--client-token", request.client_token, "Licence token (--source grid)");
  command
      .add_option("--ignore", request.ignore,
                  "Go on although the preflight has this finding; may be repeated")
      ->type_name("CODE");
}

void write_report_json(json::Writer& out, const driver_setup::SetupReport& report) {
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("version", report.record.version);
    out.member("flavour",
               report.record.flavour ? preflight::to_string(*report.record.flavour) : "");
    out.member("changed", report.changed);
    out.array("steps", report.done);
    out.array("notes", report.notes);
    out.array("checks", report.verified.items, [&](const driver_setup::VerifyItem& item) {
      out.object([&] {
        out.member("code", item.code);
        out.member("state", driver_setup::to_string(item.state));
        out.member("text", item.sentence);
        out.member("remedy", item.remedy);
      });
    });
  });
}

// "NVIDIA-Linux-x86_64-580.159.04-grid.run" says by itself what it is.
bool names_guest_driver(const preflight::DriverRequest& request) {
  const auto name =
      driver_package::parse_run_name(request.run_file.empty() ? request.url : request.run_file);
  return name.ok() && name->kind == driver_package::RunKind::GuestDriver;
}

}  // namespace

void add_driver_machine(CLI::App& command, Context& context) {
  add_machine_options(command, context);
  command.add_option("--host-root", context.root, "The same as --root, as in a pod: /host")
      ->type_name("DIR")
      ->transform(absolute_path());
}

void add_driver_flags(CLI::App& command, DriverFlags& flags) {
  add_source_flags(command, flags);
  add_module_flags(command, flags);
  add_drain_flags(command, flags.request);
}

void add_drain_flags(CLI::App& command, preflight::DriverRequest& request) {
  command.add_flag("--drain", request.drain,
                   "Wait until the processes that use the GPUs have ended");
  command.add_flag("--terminate", request.terminate,
                   "With --drain: send them SIGTERM; processes of pods are only named");
  command.add_option("--timeout", request.drain_seconds, "With --drain: how long to wait")
      ->type_name("SECONDS")
      ->capture_default_str();
}

Result<preflight::DriverRequest> request_of(const DriverFlags& flags) {
  auto request = flags.request;
  const auto source = preflight::parse_source(flags.source);
  if (!source) return Error(Errc::Invalid, fmt::format("`{}` is not a source", flags.source));
  request.source = *source;
  if (*source == preflight::Source::Run && names_guest_driver(request))
    request.source = preflight::Source::Grid;
  if (!flags.flavour.empty()) request.flavour = preflight::parse_flavour(flags.flavour);
  if (!request.run_file.empty() && !request.url.empty())
    return Error(Errc::Invalid, "--run and --url name two archives; give one of them");
  if (request.terminate && !request.drain)
    return Error(Errc::Invalid, "--terminate needs --drain, which waits for the processes");
  if (request.sign_key.empty() != request.sign_certificate.empty())
    return Error(Errc::Invalid, "--sign-key and --sign-certificate go together");
  return request;
}

void ShownDownload::bytes(std::uint64_t done, std::uint64_t total) {
  if (!context_.terminal || context_.json) return;
  const auto now = total > 0 ? done * 100 / total : done / kUnknownTotalStep;
  if (now == shown_) return;
  shown_ = now;
  fmt::print(context_.raw_err, "\r\x1b[K  {}{}", human_bytes(done),
             total > 0 ? fmt::format(" of {} ({} %)", human_bytes(total), now) : "");
  std::fflush(context_.raw_err);
}

void ShownDownload::clear() {
  if (shown_ > 0) fmt::print(context_.raw_err, "\r\x1b[K");
  shown_ = 0;
}

void ShownDownload::note(std::string_view sentence) {
  clear();
  print_note(printable(sentence), context_);
}

void print_fitting(std::string_view text, const Context& context) {
  for (const auto line : lines(text)) {
    const bool remedy = trim(line).starts_with("fix: ");
    fmt::print(context.out, "{}", wrap_lines(printable(line) + "\n", remedy ? 0 : context.columns));
  }
}

void print_setup_report(const driver_setup::SetupReport& report, std::string_view sentence,
                        const Context& context) {
  if (context.json) {
    json::Writer out(json::Layout::Indented);
    write_report_json(out, report);
    fmt::print(context.out, "{}\n", out.text());
    return;
  }
  fmt::print(context.out, "{}\n", sentence);
  for (const auto& note : report.notes) print_note(printable(note), context);
}

void add_driver(CLI::App& app, Context& context, Action& chosen) {
  auto* driver =
      app.add_subcommand("driver", "Install, load, verify, upgrade and remove the GPUs' driver");
  driver->require_subcommand(1);
  add_examples(*driver,
               "  gantry driver preflight --version 580.159.04         # what is in the way\n"
               "  sudo gantry driver install --version 580.159.04 --sha256 HEX\n"
               "  sudo gantry driver install --run NVIDIA-Linux-x86_64-580.159.04.run --dry-run\n"
               "  gantry driver status\n"
               "  sudo gantry driver verify\n"
               "  sudo gantry driver remove\n");
  add_driver_preflight(*driver, context, chosen);
  add_driver_install(*driver, context, chosen);
  add_driver_verify(*driver, context, chosen);
  add_driver_status(*driver, context, chosen);
  add_driver_upgrade(*driver, context, chosen);
  add_driver_remove(*driver, context, chosen);
  add_driver_load(*driver, context, chosen);
  add_driver_build(*driver, context, chosen);
}

}  // namespace gantry::cli
