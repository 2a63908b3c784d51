// SPDX-License-Identifier: Apache-2.0
// gantry why: finds the first broken step between a pod and its GPU, and says what repairs it.
#include "node/why/why.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "cluster/explain/manifest.hpp"
#include "container/image/image.hpp"
#include "gantry/commands.hpp"
#include "gantry/terminal.hpp"
#include "gpu/probe/snapshot.hpp"
#include "net/kube/client_config.hpp"
#include "net/kube/node_name.hpp"
#include "node/why/image_steps.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

namespace gantry::cli {
namespace {

struct WhyFlags {
  std::string subject;
  std::string kubeconfig;
  std::string node;
  std::string url;
  std::string token_file;
  bool skip_verify = false;
};

constexpr std::size_t kTokenLimit = 4096;

// The remedy may be a command: its line stays whole, so that it can be pasted.
std::string fitting(const std::string& text, std::size_t width) {
  std::string out;
  for (const auto line : lines(text)) {
    const bool remedy = line.starts_with("Do: ") || line.starts_with("Perhaps: ");
    out += wrap_lines(fmt::format("{}\n", line), remedy ? 0 : width);
  }
  return out;
}

using AsText = std::string (*)(const explain::Explanation&, bool color);

int print_explanation(explain::Explanation explanation, Context& context,
                      AsText as_text = explain::to_string) {
  for (auto& step : explanation.steps) step.remedy = sys::with_root(step.remedy, context.root);
  fmt::print(context.painted_out(), "{}",
             context.json ? explain::to_json(explanation)
                          : fitting(as_text(explanation, context.color), context.columns));
  return explanation.first_failed() == nullptr ? kOk : kProblem;
}

Result<std::optional<why::JupyterUrl>> notebook_url(const WhyFlags& flags) {
  if (flags.url.empty()) return std::optional<why::JupyterUrl>();
  GANTRY_TRY(auto url, why::parse_jupyter_url(flags.url));
  url.server.endpoint.tls.verify = !flags.skip_verify;
  if (!flags.token_file.empty()) {
    GANTRY_TRY(const auto here, sys::Host::at("/"));
    GANTRY_TRY(const auto token, here.read(flags.token_file, kTokenLimit));
    url.token = trim(token);
  }
  return std::optional(std::move(url));
}

Result<int> pod(const WhyFlags& flags, Context& context) {
  GANTRY_TRY(const auto machine, open_host(context));
  GANTRY_TRY(auto notebook, notebook_url(flags));
  GANTRY_TRY(auto access, kube::find_client_config(flags.kubeconfig, kube::Caller::Person));
  const auto slash = flags.subject.find('/');
  const auto space =
      slash == std::string::npos ? access.name_space : flags.subject.substr(0, slash);
  const auto name = slash == std::string::npos ? flags.subject : flags.subject.substr(slash + 1);
  kube::Api api(std::move(access));
  GANTRY_TRY(const auto explanation,
             why::why_pod(api, machine, space, name,
                          {.node = kube::node_name(flags.node), .notebook = std::move(notebook)}));
  return print_explanation(explanation, context);
}

Result<int> container(const WhyFlags& flags, Context& context) {
  GANTRY_TRY(const auto machine, open_host(context));
  GANTRY_TRY(const auto explanation, why::why_container(machine, flags.subject));
  return print_explanation(explanation, context);
}

// "-" is standard input: `kubectl kustomize DIR | gantry why manifest -`.
Result<std::string> manifest_text(const std::string& file) {
  if (file != "-") {
    GANTRY_TRY(const auto here, sys::Host::at("/"));
    return here.read(file, explain::kMaxManifestBytes);
  }
  std::string text;
  std::array<char, 65536> buffer{};
  while (const auto got = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), got);
    if (text.size() > explain::kMaxManifestBytes)
      return Error(Errc::Invalid,
                   fmt::format("the manifest has more than {} bytes", explain::kMaxManifestBytes));
  }
  return text;
}

Result<int> manifest(const WhyFlags& flags, Context& context) {
  GANTRY_TRY(const auto text, manifest_text(flags.subject));
  GANTRY_TRY(const auto chains, explain::explain_manifest(
                                    text, flags.subject == "-" ? "standard input" : flags.subject));
  int status = kOk;
  for (const auto& explanation : chains) {
    if (&explanation != &chains.front() && !context.json) fmt::print(context.out, "\n");
    status = std::max(status, print_explanation(explanation, context));
  }
  return status;
}

Result<int> image(const WhyFlags& flags, Context& context) {
  GANTRY_TRY(const auto machine, open_host(context));
  GANTRY_TRY(const auto image, image::open_image(flags.subject));
  GANTRY_TRY(const auto inventory, probe::snapshot(machine, {.files = probe::FindFiles::No}));
  const auto shown = flags.subject == "-" ? std::string("on standard input") : flags.subject;
  return print_explanation(why::why_image(image, inventory, shown), context,
                           explain::findings_text);
}

void add_image(CLI::App& why, const std::shared_ptr<WhyFlags>& flags, Context& context,
               Action& chosen) {
  auto* images = why.add_subcommand("image", "Check an image before it runs on this machine");
  images
      ->add_option("PATH", flags->subject,
                   "An archive of `docker save` or `podman save`, an OCI layout, or a directory "
                   "with the image's files; - is an archive on standard input")
      ->required()
      ->transform(absolute_path());
  add_machine_options(*images, context);
  add_examples(
      *images,
      "  docker save train:1 | gantry why image -\n"
      "  gantry why image train.tar              # finds a framework without CUDA\n"
      "  gantry why image ./rootfs --json        # {\"broken\": \"image.framework\", ...}\n");
  images->callback([=, &chosen] { chosen = [=](Context& c) { return image(*flags, c); }; });
}

void add_pod(CLI::App& why, const std::shared_ptr<WhyFlags>& flags, Context& context,
             Action& chosen) {
  auto* pods = why.add_subcommand("pod", "Check every step from a pod's manifest to its container");
  pods->add_option("NAMESPACE/NAME", flags->subject, "The pod")->required();
  pods->add_option("--kubeconfig", flags->kubeconfig, "Kubeconfig file (environment: KUBECONFIG)")
      ->type_name("FILE")
      ->transform(absolute_path());
  pods->add_option("--node-name", flags->node, "This node's name (default: the host's name)");
  auto* url = pods->add_option("--url", flags->url,
                               "The URL of the pod's Jupyter in a browser: ask its kernel through "
                               "that connection and in the pod");
  pods->add_option("--token-file", flags->token_file,
                   "File with Jupyter's token, if the URL has no ?token=")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->needs(url);
  pods->add_flag("--insecure-skip-tls-verify", flags->skip_verify,
                 "Do not check the certificate of an https URL")
      ->needs(url);
  add_machine_options(*pods, context);
  add_examples(
      *pods,
      "  sudo gantry why pod default/train       # on the pod's node: every step\n"
      "  gantry why pod train --kubeconfig F     # from elsewhere: only what the API shows\n"
      "  gantry why pod default/train --json     # {\"broken\": \"scheduling\", ...}\n"
      "  sudo gantry why pod default/notebook --url 'https://proxy/nb/?token=T'\n");
  pods->callback([=, &chosen] { chosen = [=](Context& c) { return pod(*flags, c); }; });
}

}  // namespace

void add_why(CLI::App& app, Context& context, Action& chosen) {
  auto flags = std::make_shared<WhyFlags>();
  auto* why = app.add_subcommand(
      "why",
      "Say why a pod, a container or an image has no GPU: the first broken step and its "
      "remedy. Exit status: 0 no step is broken (a step marked `look` is "
      "doubtful), 1 a step is broken");
  why->require_subcommand(1);
  add_pod(*why, flags, context, chosen);
  auto* containers = why->add_subcommand("container", "Check a container of this node");
  containers->add_option("ID", flags->subject, "The id that `crictl ps` or `docker ps` shows")
      ->required();
  add_machine_options(*containers, context);
  add_examples(*containers,
               "  sudo gantry why container 4c01db0b339c\n"
               "  sudo gantry why container $(docker ps -q --latest)\n");
  containers->callback([=, &chosen] { chosen = [=](Context& c) { return container(*flags, c); }; });
  auto* manifests = why->add_subcommand("manifest", "Check a manifest before it is applied");
  manifests
      ->add_option("FILE", flags->subject,
                   "YAML or JSON, with any number of objects; - is standard input")
      ->required()
      ->transform(absolute_path());
  add_machine_options(*manifests, context);
  add_examples(
      *manifests,
      "  gantry why manifest job.yaml            # finds half a GPU, or a misspelt resource\n"
      "  kubectl kustomize . | gantry why manifest -\n");
  manifests->callback([=, &chosen] { chosen = [=](Context& c) { return manifest(*flags, c); }; });
  add_image(*why, flags, context, chosen);
}

}  // namespace gantry::cli
