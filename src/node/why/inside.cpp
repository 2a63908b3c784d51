// SPDX-License-Identifier: Apache-2.0
#include "node/why/inside.hpp"

#include "base/core/text.hpp"
#include "container/rootfs/loader_find.hpp"
#include "node/why/inside_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::why {
namespace {

constexpr std::size_t kPathLimit = 64;  // directories of LD_LIBRARY_PATH that are looked at
constexpr std::string_view kHowToAsk =
    "Kubernetes: resources: {limits: {nvidia.com/gpu: 1}}; docker and podman: --device "
    "nvidia.com/gpu=all";

bool has_node(const Inside& inside, std::string_view name) {
  return std::find(inside.nodes.begin(), inside.nodes.end(), name) != inside.nodes.end();
}

std::vector<std::string> gpu_nodes(const Inside& inside) {
  std::vector<std::string> found;
  for (const auto& name : inside.nodes) {
    if (name.size() > 6 && name.starts_with("nvidia") && parse_u64(name.substr(6)))
      found.push_back("/dev/" + name);
  }
  return found;
}

void explain_no_node(Link& link, const Inside& inside) {
  link.verdict = Verdict::Broken;
  link.remedy = kHowToAsk;
  const auto visible = variable(inside, "NVIDIA_VISIBLE_DEVICES");
  link.read = fmt::format("no /dev/nvidia[0-9], NVIDIA_VISIBLE_DEVICES{}",
                          visible ? "=" + *visible : std::string(" not set"));
  if (!visible) {
    link.cause =
        "the container was started without a GPU: no CDI device was asked for, and "
        "NVIDIA_VISIBLE_DEVICES, by which a runtime of NVIDIA's kind is asked, is not set";
  } else if (visible->empty() || *visible == "void" || *visible == "none") {
    link.cause = fmt::format("NVIDIA_VISIBLE_DEVICES={} says that it wants no GPU", *visible);
    link.remedy = "set it to all or to the GPUs' numbers, or ask by " + std::string(kHowToAsk);
  } else {
    link.cause = fmt::format(
        "NVIDIA_VISIBLE_DEVICES={} asks for GPUs, but what started the container does "
        "not go by it, and no CDI device was asked for",
        *visible);
  }
}

Link nodes_link(const Inside& inside) {
  Link link{.id = "container.nodes", .what = "It has device nodes"};
  const auto gpus = gpu_nodes(inside);
  link.read = fmt::format("{}", fmt::join(gpus, " "));
  if (gpus.empty() && has_node(inside, "dxg")) {
    link.read = "/dev/dxg (WSL)";
  } else if (gpus.empty()) {
    explain_no_node(link, inside);
  } else if (!has_node(inside, "nvidiactl") || !has_node(inside, "nvidia-uvm")) {
    const auto* missing = has_node(inside, "nvidiactl") ? "/dev/nvidia-uvm" : "/dev/nvidiactl";
    link.verdict = Verdict::Broken;
    link.cause = fmt::format("{} is missing, and without it CUDA does not start", missing);
    link.remedy =
        "on the node: sudo nvidia-modprobe -c 0 -u; sudo gantry cdi refresh; then start the "
        "container anew";
  }
  return link;
}

// CUDA counts the GPUs that it may use until the first name that makes no sense.
std::optional<Link> visible_link(const Inside& inside) {
  const auto value = variable(inside, "CUDA_VISIBLE_DEVICES");
  if (!value) return std::nullopt;
  Link link{.id = "container.cuda-visible",
            .what = "CUDA may use them",
            .read = "CUDA_VISIBLE_DEVICES=" + *value};
  const auto first = trim(std::string_view(*value).substr(0, value->find(',')));
  const auto number = parse_u64(first);
  const bool name = first.starts_with("GPU-") || first.starts_with("MIG-");
  const auto count = gpu_nodes(inside).size();
  if (name || (number && (count == 0 || *number < count))) return link;
  link.verdict = Verdict::Broken;
  link.cause = number ? fmt::format(
                            "CUDA_VISIBLE_DEVICES={} names GPU {}, and the container has "
                            "{}, counted from 0",
                            *value, *number, count)
                      : fmt::format("CUDA_VISIBLE_DEVICES={} hides every GPU from CUDA", *value);
  link.remedy = "take CUDA_VISIBLE_DEVICES out of the pod's or the image's environment";
  return link;
}

// nullopt: the loader is glibc's.
std::optional<Link> loader_link(const rootfs::Root& root) {
  const auto loaders = rootfs::loaders_in(root);
  if (loaders.glibc) return std::nullopt;
  Link link{.id = "container.loader",
            .what = "Its C library is glibc",
            .verdict = Verdict::Broken,
            .read = "no dynamic loader",
            .cause = "the image has static programs only: nothing in it can load libcuda",
            .remedy = "use an image with glibc and CUDA: nvidia/cuda, or a framework's own"};
  if (loaders.musl) {
    link.id = "container.musl";
    link.read = fmt::format("/lib/ld-musl-{}.so.1", loaders.musl_architectures.front());
    link.cause = "the image is built on musl (Alpine); the driver's libraries need glibc";
    link.remedy = "use an image with glibc: debian, ubuntu, nvidia/cuda";
  }
  return link;
}

}  // namespace

std::optional<std::string> variable(const Inside& inside, std::string_view name) {
  for (const auto& entry : inside.environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::vector<std::string> library_path(const Inside& inside) {
  std::vector<std::string> path;
  const auto own = variable(inside, "LD_LIBRARY_PATH").value_or("");
  for (auto directory : split(own, ':')) {
    while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
    if (directory.starts_with('/') && path.size() < kPathLimit) path.emplace_back(directory);
  }
  return path;
}

std::vector<Link> inside_links(const rootfs::Root& root, const Inside& inside) {
  std::vector<Link> links{nodes_link(inside)};
  if (auto visible = visible_link(inside)) links.push_back(*std::move(visible));
  if (auto loader = loader_link(root)) {
    links.push_back(*std::move(loader));
    return links;
  }
  const auto mounts = rootfs::mounts_from(inside.mountinfo);
  const auto libcuda = find_libcuda(root, inside);
  if (auto hidden = mounts_link(libcuda, mounts)) links.push_back(*std::move(hidden));
  links.push_back(library_link(libcuda, inside, mounts));
  const auto places = python_places(root, inside);
  links.push_back(cuda_link(root, inside, places));
  if (auto framework = framework_link(root, places)) links.push_back(*std::move(framework));
  return links;
}

}  // namespace gantry::why
