// SPDX-License-Identifier: Apache-2.0
// gantry sim package: writes a simulated driver package, NVIDIA-Linux-x86_64-VERSION.run.
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/sys/replace_file.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/sim_commands.hpp"
#include "install/driver_package/checksum.hpp"
#include "sim/package/package.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

struct PackageFlags {
  sim::PackageOptions package;
  std::string output;  // "": in the current directory, with NVIDIA's name
};

std::string sha256_of_text(std::string_view bytes) {
  driver_package::Sha256 digest;
  digest.add(bytes);
  return digest.finish();
}

Result<int> write_package(const PackageFlags& flags, Context& context) {
  GANTRY_TRY(const auto package, sim::make_driver_package(flags.package));
  const auto path = flags.output.empty() ? package.file_name : flags.output;
  GANTRY_CHECK(sys::replace_file(path, package.bytes, 0755).in("writing the package"));
  const auto digest = sha256_of_text(package.bytes);
  if (context.json) {
    json::Writer out(json::Layout::Spaced);
    out.object([&] {
      out.member("schema", kFirstSchema);
      out.member("file", path);
      out.member("version", package.version);
      out.member("bytes", package.bytes.size());
      out.member("sha256", digest);
    });
    fmt::print(context.out, "{}\n", out.text());
    return kOk;
  }
  fmt::print(context.out, "{}: simulated driver {}, {} files, {}\nsha256: {}\n", path,
             package.version, package.files, human_bytes(package.bytes.size()), digest);
  const auto file = path.find('/') == std::string::npos ? "./" + path : path;
  fmt::print(context.out, "Try, in a virtual machine: gantry driver install --run {} --sha256 {}\n",
             sys::shell_word(file), digest);
  return kOk;
}

}  // namespace

void add_sim_package(CLI::App& sim, Context& context, Action& chosen) {
  auto flags = std::make_shared<PackageFlags>();
  auto* command = sim.add_subcommand("package", "Write a simulated driver package (a .run file)");
  command
      ->add_option(
          "--driver", flags->package.driver,
          "Version, such as 430.26, 460.56, 535.261.03, 580.159.04, or branch, such as 580")
      ->type_name("VERSION")
      ->required();
  command
      ->add_option("-o,--output", flags->output,
                   "File to write (default: NVIDIA-Linux-x86_64-VERSION.run here)")
      ->type_name("FILE");
  command
      ->add_option("--source", flags->package.source_tree,
                   "Gantry's source tree (default: the one that this program is in)")
      ->type_name("DIR")
      ->transform(absolute_path());
  command
      ->add_option("--libraries", flags->package.libraries, "Directory of the simulated libraries")
      ->type_name("DIR")
      ->envname("GANTRY_SIM_LIBRARIES");
  command->add_flag("--json", context.json, "Print JSON");
  add_examples(*command,
               "  gantry sim package --driver 580.159.04\n"
               "  gantry sim package --driver 460 -o /tmp/driver.run\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& c) { return write_package(*flags, c); }; });
}

}  // namespace gantry::cli
