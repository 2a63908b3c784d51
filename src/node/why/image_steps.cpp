// SPDX-License-Identifier: Apache-2.0
#include "node/why/image_steps.hpp"

#include "base/core/text.hpp"
#include "gpu/loader/elf.hpp"
#include "node/why/image_steps_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace gantry::why {
namespace {

using explain::Step;
using explain::StepStatus;

// Programs and loaders that almost every image has one of; their headers say for which machine.
constexpr std::array kProbes{"/bin/sh",
                             "/usr/bin/env",
                             "/bin/busybox",
                             "/usr/bin/python3",
                             "/usr/local/bin/python3",
                             "/lib64/ld-linux-x86-64.so.2",
                             "/lib/ld-linux-aarch64.so.1"};

std::string_view architecture_name(std::uint16_t machine) {
  switch (machine) {
    case loader::kMachineAmd64: return "amd64";
    case loader::kMachineAarch64: return "arm64";
    case loader::kMachineI386: return "386";
    case loader::kMachineArm: return "arm";
    default: return "another architecture";
  }
}

struct Probe {
  std::string path;
  std::string_view architecture;  // "" if the image has none of the usual programs
};

Probe find_program(const image::RootFiles& files) {
  for (const auto* path : kProbes) {
    if (const auto machine = files.elf_machine(path)) return {path, architecture_name(*machine)};
  }
  return {};
}

Step architecture_step(const image::Image& image) {
  const auto own = image::own_architecture();
  const auto& said = image.config.architecture;
  const auto program = find_program(*image.files);
  Step step{.id = "image.architecture", .what = "It is for this machine's processor"};
  std::vector<std::string> read;
  if (!said.empty()) read.push_back(fmt::format("its configuration says {}", said));
  if (!program.architecture.empty())
    read.push_back(fmt::format("{} is for {}", program.path, program.architecture));
  step.read = fmt::format("{}", fmt::join(read, ", "));
  const bool said_other = !said.empty() && said != own;
  const bool is_other = !program.architecture.empty() && program.architecture != own;
  if (read.empty()) {
    step.verdict = StepStatus::Unknown;
    step.read = "neither a configuration nor a program that says it";
  } else if (said_other || is_other) {
    const auto other = is_other ? std::string(program.architecture) : said;
    step.verdict = StepStatus::Failed;
    step.cause = fmt::format("the image is for {}, this machine is {}: its programs do not start",
                             other, own);
    if (!program.architecture.empty() && !said.empty() && said_other != is_other)
      step.cause = fmt::format("its configuration says {}, but its programs are for {}", said,
                               program.architecture);
    step.remedy = fmt::format("build or pull it again with --platform linux/{}", own);
  }
  return step;
}

// Names the files that were left out, because "found nothing" would mean that all were read.
void add_notes(explain::Explanation& explanation, const image::Image& image) {
  for (const auto& note : image.config.notes)
    explanation.steps.push_back({.id = "image.part",
                                 .what = "All of it was looked at",
                                 .verdict = StepStatus::Unknown,
                                 .read = note});
}

std::string subject(const image::Image& image, const std::string& shown) {
  return image.config.name.empty()
             ? fmt::format("image {} ({})", shown, image.form)
             : fmt::format("image {} ({}, {})", shown, image.form, image.config.name);
}

}  // namespace

explain::Explanation why_image(const image::Image& image, const model::Inventory& machine,
                               const std::string& shown) {
  explain::Explanation explanation{.subject = subject(image, shown),
                                   .steps = {architecture_step(image)}};
  const auto add = [&](std::vector<Step> steps) {
    for (auto& step : steps) explanation.steps.push_back(std::move(step));
  };
  if (auto loader = loader_step("image", *image.files)) {
    explanation.steps.push_back(*std::move(loader));
  } else {
    const auto software = find_software(*image.files, image.config.env);
    if (auto framework = framework_step("image", software))
      explanation.steps.push_back(*std::move(framework));
    if (auto cuda = cuda_step("image", software, false))
      explanation.steps.push_back(*std::move(cuda));
    add(image_cuda_steps(image, machine, software));
  }
  add(image_environment_steps(image, machine));
  add_notes(explanation, image);
  return explanation;
}

}  // namespace gantry::why
