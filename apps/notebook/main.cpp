// SPDX-License-Identifier: Apache-2.0
#include "notebook/list_gpus.hpp"
#include "notebook/serve.hpp"
#include "vector_add/vector_add.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

using namespace gantry::workload;

constexpr const char* kSelf = "/proc/self/exe";

// Starts this program again for one job.
std::vector<std::string> job(const char* name, const Options& options) {
  std::vector<std::string> argv{kSelf,
                                "--job",
                                name,
                                "--device",
                                fmt::to_string(options.device),
                                "--hold",
                                fmt::to_string(options.hold_seconds)};
  if (!options.library.empty()) argv.insert(argv.end(), {"--library", options.library});
  return argv;
}

struct NotebookFlags {
  std::string listen = ":8888";
  int deadline_seconds = 60;
  std::string job;
};

int run(const NotebookFlags& flags, Options options, std::FILE* out, std::FILE* err) {
  const std::string called = options.called;
  if (!flags.job.empty()) {
    options.called = "gantry-notebook";
    return flags.job == "add" ? vector_add(options, out, err) : look(options, out, err);
  }
  const auto status =
      serve({.listen = flags.listen,
             .notebook = {.run = job("add", options),
                          .look = job("look", options),
                          .deadline = std::chrono::seconds(flags.deadline_seconds)}},
            out);
  if (status.ok()) return 0;
  print_error(err, called, status.error());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  NotebookFlags flags;
  return run_program(
      {.about = "Serve a web page that shows the GPUs and adds vectors on one of them",
       .examples = "Pages: / is for people; /run adds 50000 elements on the GPU and returns the "
                   "output; /status is JSON: the GPUs, the last run, and whether its client was "
                   "still connected, which tells a dropped connection from a GPU fault.\n"
                   "Exit status: 0 after SIGTERM or SIGINT, 1 it cannot listen, 2 wrong usage.\n\n"
                   "Examples:\n"
                   "  gantry-notebook\n"
                   "  gantry-notebook --listen 127.0.0.1:8888 --deadline 20\n"
                   "  curl http://127.0.0.1:8888/run\n"
                   "  curl http://127.0.0.1:8888/status",
       .takes_device = true,
       .more =
           [&](CLI::App& app) {
             app.add_option("--listen", flags.listen, "[ADDRESS]:PORT")->capture_default_str();
             app.add_option("--deadline", flags.deadline_seconds, "Seconds until a run is stopped")
                 ->capture_default_str()
                 ->check(CLI::Range(1, 86400));
             app.add_option("--job", flags.job)->check(CLI::IsMember({"add", "look"}))->group("");
           },
       .run = [&](const Options& options, std::FILE* out,
                  std::FILE* err) { return run(flags, options, out, err); }},
      argc, argv);
}
