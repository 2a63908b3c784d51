// SPDX-License-Identifier: Apache-2.0
#include "trainer/trainer.hpp"

#include <CLI/CLI.hpp>

#include <string>

int main(int argc, char** argv) {
  gantry::workload::TrainerOptions how;
  std::string ignored;
  return gantry::workload::run_program(
      {.about = "Learn to read digits on a GPU and print the accuracy",
       .examples =
           "Exit status: 0 it learnt, 1 it did not or no GPU can be used, 2 wrong usage.\n\n"
           "Examples:\n"
           "  gantry-trainer --max_steps 500\n"
           "  gantry-trainer --device 1 --max_steps 10000 --hold 60\n"
           "  gantry-trainer --max_steps 100 --verify\n"
           "  docker run --rm --device nvidia.com/gpu=0 -v $(which gantry-trainer):/trainer "
           "debian:12 /trainer --max_steps 500",
       .takes_device = true,
       .more =
           [&](CLI::App& app) {
             app.add_option("--max_steps,--max-steps", how.max_steps, "Steps of gradient descent")
                 ->capture_default_str()
                 ->check(CLI::Range(0, 100000000));
             app.add_option("--batch_size,--batch-size", how.batch_size, "Pictures in each step")
                 ->capture_default_str()
                 ->check(CLI::Range(1, 4000));
             app.add_option("--learning_rate,--learning-rate", how.learning_rate, "Learning rate")
                 ->capture_default_str()
                 ->check(CLI::PositiveNumber);
             app.add_flag("--verify", how.verify,
                          "Compare the weights after ten steps with the CPU's");
             for (const char* name : {"--data_dir", "--log_dir"}) {
               app.add_option(name, ignored,
                              "Accepted for older manifests, without effect: the digits are "
                              "generated, and the log goes to stdout");
             }
           },
       .run = [&](const gantry::workload::Options& options, std::FILE* out,
                  std::FILE* err) { return gantry::workload::train(options, how, out, err); }},
      argc, argv);
}
